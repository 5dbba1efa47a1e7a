"""The dimensions of a loop nest as values: their trip counts, and the induction variables of a
point."""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from aotc import ops


class Dimension(Struct, frozen=True):
    """One loop: its lower bound, its step, and its trip count as a value and, if known, as a
    number."""

    lower: Any
    step: Any
    trips: Any
    known_trips: int | None

    @staticmethod
    def of(lower: Any, upper: Any, step: Any) -> Dimension:
        """The loop with these bounds. The trip count is computed at the insertion point."""
        trips = known_trips(lower, upper, step)
        if trips is not None:
            return Dimension(lower, step, ops.constant_index(trips), trips)
        # An empty range must not become a negative count.
        is_from_0, is_by_1 = ops.known_index(lower) == 0, ops.known_index(step) == 1
        distance = upper if is_from_0 else ops.index_op("arith.subi", upper, lower)
        count = distance if is_by_1 else ops.index_op("arith.ceildivsi", distance, step)
        zero = ops.constant_index(0)
        return Dimension(lower, step, ops.index_op("arith.maxsi", count, zero), None)


def dimensions_of(loop: Any) -> list[Dimension]:
    """The dimensions of an scf.parallel, outermost first. Trip counts are computed at the insertion
    point."""
    lowers, uppers, steps, _ = ops.operand_groups(loop)
    return [Dimension.of(*bounds) for bounds in zip(lowers, uppers, steps, strict=True)]


def known_trips(lower: Any, upper: Any, step: Any) -> int | None:
    """The trip count of a loop with these bounds; None if it is unknown."""
    low, high, by = (ops.known_index(value) for value in (lower, upper, step))
    if low is None or high is None or by is None:
        return None
    return max(0, -(-(high - low) // by))


def least_trips(lower: Any, upper: Any, step: Any) -> int:
    """The trip count of a loop with these bounds; if it is unknown, the factor of it that is known:
    the other one is not expected to be 0."""
    trips, owner = known_trips(lower, upper, step), ops.defining(upper)
    if trips is not None:
        return trips
    is_product = owner is not None and owner.name == "arith.muli" and ops.known_index(lower) == 0
    if owner is None or not is_product or ops.known_index(step) != 1:
        return 1
    return math.prod(number for one in owner.operands if (number := ops.known_index(one)))


def loop_trips(loop: Any) -> list[int | None]:
    """The trip count of each dimension of an scf.parallel; None if it is unknown."""
    lowers, uppers, steps, _ = ops.operand_groups(loop)
    return [known_trips(*bounds) for bounds in zip(lowers, uppers, steps, strict=True)]


def product(axis: list[Dimension]) -> Any:
    """The total number of points of the dimensions, as a value."""
    total = axis[0].trips
    for dimension in axis[1:]:
        total = ops.index_op("arith.muli", total, dimension.trips)
    return total


def known_product(trips: list[int | None]) -> int | None:
    """The product of the trip counts; None if one is unknown."""
    result = 1
    for count in trips:
        if count is None:
            return None
        result *= count
    return result


def induction_values(axis: list[Dimension], position: Any) -> list[Any]:
    """The induction variables, outermost first, of the point with linear number `position`."""
    rest = position
    values: list[Any] = []
    for i, dimension in enumerate(reversed(axis)):
        count = rest
        if i < len(axis) - 1:
            count = ops.index_op("arith.remui", rest, dimension.trips)
            rest = ops.index_op("arith.divui", rest, dimension.trips)
        if ops.known_index(dimension.step) != 1:
            count = ops.index_op("arith.muli", count, dimension.step)
        if ops.known_index(dimension.lower) != 0:
            count = ops.index_op("arith.addi", dimension.lower, count)
        values.insert(0, count)
    return values
