"""`aotc-relax-saturation`: NaN becomes a limit, where numbers are limited to become integers.

A conversion of NaN to an integer has no defined result, and may give a number that the integer's
type does not have. So a maximum or minimum that is only converted gives its other operand where it
meets NaN, which is one instruction, too, where that operand is constant.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

_NUMBERS = {"arith.maximumf": "arith.maxnumf", "arith.minimumf": "arith.minnumf"}
_CONVERSIONS = ("arith.fptosi", "arith.fptoui")


class RelaxSaturation(OwnPass, frozen=True):
    name = "aotc-relax-saturation"
    reason: str = "limits of what becomes an integer hold for NaN, too, and are one instruction"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            extremes = ops.find(lowering.module.operation, *_NUMBERS)
            for extreme in [one for one in extremes if _is_converted(one.results[0])]:
                with extreme.location, ir.InsertionPoint(extreme):
                    number = ops.binary(_NUMBERS[extreme.name], *extreme.operands)
                extreme.results[0].replace_all_uses_with(number)
                ops.erase(extreme)


def _is_converted(value: Any) -> bool:
    """Whether nothing else is done with it but to limit it, and to convert what that gives."""
    users = [use.owner.operation for use in value.uses]
    return bool(users) and all(
        user.name in _CONVERSIONS or (user.name in _NUMBERS and _is_converted(user.results[0]))
        for user in users
    )
