"""`aotc-relax-saturation`: clamping before a conversion to an integer maps NaN to a bound.

The conversion of NaN to an integer has no defined result, and may give a value outside the integer
type's range. So a maximum or minimum whose only use is a conversion returns its other operand for
NaN. This is also a single instruction if that operand is constant.

A value that is not clamped like this is converted to 32 bits and truncated. torch-mlir clamps
unsigned bytes in a different way, for example where it pads an image, and then converts them as
signed ones, which is not defined above 127.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

_NUMBERS = {"arith.maximumf": "arith.maxnumf", "arith.minimumf": "arith.minnumf"}
_CONVERSIONS = ("arith.fptosi", "arith.fptoui")
_WIDE = 32


class RelaxSaturation(OwnPass, frozen=True):
    name = "aotc-relax-saturation"
    reason: str = "clamping before conversion to an integer handles NaN, and is one instruction"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            extremes = ops.find(lowering.module.operation, *_NUMBERS)
            for extreme in [one for one in extremes if _is_converted(one.results[0])]:
                with extreme.location, ir.InsertionPoint(extreme):
                    number = ops.binary(_NUMBERS[extreme.name], *extreme.operands)
                extreme.results[0].replace_all_uses_with(number)
                ops.erase(extreme)
            for conversion in ops.find(lowering.module.operation, *_CONVERSIONS):
                if _is_narrow(conversion.results[0].type) and not _is_clamped(conversion):
                    _widen(conversion)


def _is_converted(value: Any) -> bool:
    """Whether all users clamp the value and convert the result, or convert it directly."""
    users = [use.owner.operation for use in value.uses]
    return bool(users) and all(
        user.name in _CONVERSIONS or (user.name in _NUMBERS and _is_converted(user.results[0]))
        for user in users
    )


def _is_narrow(type_: Any) -> bool:
    return isinstance(type_, ir.IntegerType) and 1 < type_.width < _WIDE


def _is_clamped(conversion: Any) -> bool:
    limit = ops.defining(conversion.operands[0])
    return limit is not None and limit.name in (*_NUMBERS, *_NUMBERS.values())


def _widen(conversion: Any) -> None:
    result = conversion.results[0]
    with conversion.location, ir.InsertionPoint(conversion):
        wide = ir.IntegerType.get_signless(_WIDE)
        integer = ops.unary("arith.fptosi", conversion.operands[0], wide)
        result.replace_all_uses_with(ops.unary("arith.trunci", integer, result.type))
    ops.erase(conversion)
