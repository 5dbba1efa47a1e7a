"""Sums over lanes of a warp, which share the work of adding them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aotc.builder import Builder
from aotc.numbers import Condition, Number, Value, compare


def add_over_lanes(
    b: Builder, lane: Number, values: Sequence[Value], distances: Iterable[int]
) -> tuple[list[Value], Number, Condition]:
    """Adds each of `values` over the lanes whose numbers differ in the bits `distances`.

    Each two lanes share the work where they can: one goes on with the first half of the sums, the
    other with the second. Returns a lane's sums, the number of the first, and whether the lane is
    to write them.
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


def halvings(most: int, least: int) -> list[int]:
    """The powers of two from `most` / 2 down to `least`."""
    found = []
    while (most := most // 2) >= least:
        found.append(most)
    return found
