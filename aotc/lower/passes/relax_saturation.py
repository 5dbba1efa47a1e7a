"""`aotc-relax-saturation`: what is limited before it becomes an integer is taken for a number.

A conversion of NaN to an integer has no defined result. So a maximum or minimum that is only
converted need not give NaN where it meets one, nor tell 0 from -0: each is one instruction then.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

_EXTREMES = ("arith.maximumf", "arith.minimumf")
_CONVERSIONS = ("arith.fptosi", "arith.fptoui")
_FLAGS = "#arith.fastmath<nnan,nsz>"


class RelaxSaturation(OwnPass, frozen=True):
    name = "aotc-relax-saturation"
    reason: str = "limits of what becomes an integer are one instruction each"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            flags = ir.Attribute.parse(_FLAGS)
            for extreme in ops.find(lowering.module.operation, *_EXTREMES):
                if _is_converted(extreme.results[0]):
                    extreme.attributes["fastmath"] = flags


def _is_converted(value: Any) -> bool:
    """Whether nothing else is done with it but to limit it, and to convert what that gives."""
    users = [use.owner.operation for use in value.uses]
    return bool(users) and all(
        user.name in _CONVERSIONS or (user.name in _EXTREMES and _is_converted(user.results[0]))
        for user in users
    )
