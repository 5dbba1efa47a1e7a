"""Assertions that compare two numbers, and say them where they fail."""

from __future__ import annotations

from typing import Any, NamedTuple

from aotc import ops
from aotc.mlir import ir

# On a cf.assert whose condition is an arith.cmpi of two indices, or such a one or (arith.ori) some
# other: its message as a format of C's printf, which takes the two as %lld. The assertion's own
# message does without them.
FORMAT = "aotc.format"
# arith.cmpi's predicates.
EQ, ULT, UGT = 0, 6, 8


class Compared(NamedTuple):
    """The format, and the two numbers, of type index."""

    format: str
    numbers: tuple[Any, Any]


def compared_by(assertion: Any) -> Compared | None:
    """None where the assertion says no numbers, or its condition was folded."""
    comparison = ops.defining(assertion.operands[0])
    if comparison is not None and comparison.name == "arith.ori":
        comparison = ops.defining(comparison.operands[0])
    if FORMAT not in assertion.attributes or comparison is None:
        return None
    if comparison.name != "arith.cmpi" or comparison.operands[0].type != ops.index():
        return None
    first, second = comparison.operands
    predicate = ir.IntegerAttr(comparison.attributes["predicate"]).value
    if predicate == UGT:
        first, second = second, first
    elif predicate not in (EQ, ULT):
        return None
    return Compared(str(ir.StringAttr(assertion.attributes[FORMAT]).value), (first, second))
