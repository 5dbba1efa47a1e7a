"""How operations of arith round: their rounding modes."""

from __future__ import annotations

from enum import Enum
from typing import Any

from aotc.mlir import ir

ROUNDING_MODE = "roundingmode"
# Operations that may have a rounding mode.
ROUNDED = ("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.truncf")


class Rounding(Enum):
    """`arith.roundingmode`, by number."""

    TO_NEAREST_EVEN = 0
    DOWNWARD = 1
    UPWARD = 2
    TOWARD_ZERO = 3
    TO_NEAREST_AWAY = 4


def rounding_of(operation: Any) -> Rounding:
    """The operation's rounding mode; to nearest even, if it has none."""
    if operation.name not in ROUNDED or ROUNDING_MODE not in operation.attributes:
        return Rounding.TO_NEAREST_EVEN
    return Rounding(ir.IntegerAttr(operation.attributes[ROUNDING_MODE]).value)


def rounds_to_nearest(operation: Any) -> bool:
    """Whether the operation does not ask for another rounding mode than to nearest even."""
    return rounding_of(operation) is Rounding.TO_NEAREST_EVEN
