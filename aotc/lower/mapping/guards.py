"""Conditions under which a column's element of a padded row exists, and where all columns have
one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.lower.mapping.columns import Columns
from aotc.lower.mapping.lane_kinds import UNIFORM, Kinds
from aotc.mlir import ir

_ULT, _SLT, _SGE = 6, 2, 5
# The smallest and the largest value.
Range = tuple[int, int]


class Guard(Struct, frozen=True):
    """The comparison `stride * column + i < bound` of unsigned indices, for each i from `least` to
    `most`, which depends on the variables of inner loops."""

    condition: Any
    stride: int
    least: int
    most: int
    bound: Any

    def holds(self, first: Any, last: Any, here: Callable[[Any], Any]) -> Any:
        """Whether it holds for the columns from `first` to `last` and for each i, at the insertion
        point."""
        step = ops.constant_index(self.stride)
        low, high = (
            ops.index_op(
                "arith.addi", ops.index_op("arith.muli", column, step), ops.constant_index(i)
            )
            for column, i in ((first, self.least), (last, self.most))
        )
        is_low = ops.compare(_SGE, low, ops.constant_index(0))
        return ops.binary("arith.andi", is_low, ops.compare(_SLT, high, here(self.bound)))


def guards_of(columns: Columns, kinds: Kinds) -> list[Guard]:
    """The guards of padded loads in the body that compare a column's index."""
    if not kinds.padded:
        return []
    inside = [inner for op in columns.body for inner in ops.walk(op)]
    made = set(inside)
    found = []
    for comparison in inside:
        if comparison.name != "arith.cmpi":
            continue
        index, bound = comparison.operands
        is_below = ir.IntegerAttr(comparison.attributes["predicate"]).value == _ULT
        if not is_below or kinds[index] <= UNIFORM or _owner(bound) in made:
            continue
        if kinds[bound] != UNIFORM or (terms := _terms(index, columns.variables[-1])) is None:
            continue
        found.append(Guard(comparison.results[0], kinds[index], *terms, bound))
    return found


def _owner(value: Any) -> Any:
    """The operation that has the value as a result, or as an argument of a region."""
    owner = ops.defining(value)
    return value.owner.owner.operation if owner is None else owner


def _terms(index: Any, column: Any) -> Range | None:
    """The range of an index without the multiple of the column; None if it is unknown."""
    known = ops.known_index(index)
    if known is not None:
        return known, known
    if index == column:
        return 0, 0
    owner = ops.defining(index)
    if owner is None:
        return _of_variable(index)
    if owner.name not in ("arith.addi", "arith.subi", "arith.muli"):
        return None
    left, right = (_terms(operand, column) for operand in owner.operands)
    if left is None or right is None:
        return None
    if owner.name == "arith.addi":
        return left[0] + right[0], left[1] + right[1]
    if owner.name == "arith.subi":
        return left[0] - right[1], left[1] - right[0]
    ends = [one * other for one in left for other in right]
    return min(ends), max(ends)


def _of_variable(variable: Any) -> Range | None:
    """The range of the variable of an inner loop with known bounds."""
    loop = variable.owner.owner.operation
    if loop.name != "scf.for" or variable != variable.owner.arguments[0]:
        return None
    lower, upper, step = (ops.known_index(one) for one in list(loop.operands)[:3])
    if lower is None or upper is None or step is None or lower >= upper:
        return None
    return lower, lower + (upper - 1 - lower) // step * step
