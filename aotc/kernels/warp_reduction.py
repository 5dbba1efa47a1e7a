"""Reductions over the lanes of a warp, by butterfly shuffles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aotc.builder import Builder
from aotc.builder.numbers import Condition, Number, Value, compare


def reduce_over_lanes(
    b: Builder, lane: Number, values: Sequence[Value], distances: Iterable[int]
) -> tuple[list[Value], Number, Condition]:
    """Adds each of `values` over the lanes whose ids differ only in the bits `distances`, which are
    powers of two.

    If the number of values is even, a step also halves it: one lane of each pair continues with the
    first half of the partial sums, the other lane with the second half. Otherwise both lanes
    compute the same, and the upper one is told not to write. Returns the sums that the lane holds,
    the index in `values` of the first one, and whether the lane writes them.
    """
    sums = list(values)
    first: Number = 0
    writes: Condition = True
    for distance in distances:
        bit = lane // distance % 2
        is_lower = compare("eq", bit, 0)
        if len(sums) % 2 == 0:
            half = len(sums) // 2
            pairs = list(zip(sums[:half], sums[half:], strict=True))
            kept = [b.select(is_lower, low, high) for low, high in pairs]
            given = [b.select(is_lower, high, low) for low, high in pairs]
            first = first + bit * half
        else:
            kept = given = sums
            writes = writes & is_lower
        sums = [
            b.add(value, b.shuffle_xor(other, distance))
            for value, other in zip(kept, given, strict=True)
        ]
    return sums, first, writes


def butterfly_distances(most: int, least: int) -> list[int]:
    """`most` / 2, `most` / 4, ..., down to `least`: the shuffle distances of a butterfly reduction.
    Both are powers of two."""
    found = []
    while (most := most // 2) >= least:
        found.append(most)
    return found
