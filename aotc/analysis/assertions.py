"""Assertions that compare two numbers, and print them in the message of a failure."""

from __future__ import annotations

from typing import Any, NamedTuple

from aotc import ops
from aotc.attributes import FORMAT_ATTRIBUTE
from aotc.mlir import ir

# arith.cmpi's predicates.
EQ, ULT, UGT = 0, 6, 8


class Compared(NamedTuple):
    """The format, and the two numbers that it prints, of type index."""

    format: str
    numbers: tuple[Any, Any]


def compared_by(assertion: Any) -> Compared | None:
    """What the assertion compares; None if it has no format, or if its condition was folded."""
    comparison = ops.defining(assertion.operands[0])
    if comparison is not None and comparison.name == "arith.ori":
        comparison = ops.defining(comparison.operands[0])
    if FORMAT_ATTRIBUTE not in assertion.attributes or comparison is None:
        return None
    if comparison.name != "arith.cmpi" or comparison.operands[0].type != ops.index():
        return None
    first, second = comparison.operands
    predicate = ir.IntegerAttr(comparison.attributes["predicate"]).value
    if predicate == UGT:
        first, second = second, first
    elif predicate not in (EQ, ULT):
        return None
    return Compared(
        str(ir.StringAttr(assertion.attributes[FORMAT_ATTRIBUTE]).value), (first, second)
    )
