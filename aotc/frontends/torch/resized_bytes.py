"""Resizes images of uint8 with results bit-identical to those of PyTorch's CPU kernels.

These kernels round the weights of each result to 16-bit integers, add integer products, and round
the result of each dimension to bytes, beginning with the last dimension. PyTorch's own
decomposition uses floats, which changes one byte in five.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from aotc.frontends.torch.constants import constant

Tensor = Any

# The exclusive upper bound of the rounded weights, and the most fractional bits that they may have.
_WEIGHT_BOUND, _MOST_BITS = 2**15, 22


class Filter(NamedTuple):
    """A filter: the weight as a function of the distance. It is 0 beyond `taps` / 2."""

    taps: int
    weight: Callable[[float], float]


def _triangle(x: float) -> float:
    return max(0.0, 1 - abs(x))


def _cubic(a: float) -> Callable[[float], float]:
    """Keys' cubic kernel."""

    def weight(x: float) -> float:
        x = abs(x)
        if x < 1:
            return ((a + 2) * x - (a + 3)) * x * x + 1
        return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0

    return weight


LINEAR, CUBIC, SMOOTH_CUBIC = (
    Filter(2, _triangle),
    Filter(4, _cubic(-0.75)),
    Filter(4, _cubic(-0.5)),
)


def resize_bytes(
    x: Tensor,
    counts: Sequence[int],
    align_corners: bool,
    scales: Sequence[float | None],
    *,
    of: Filter,
    antialias: bool,
) -> Tensor:
    """Resizes the last two dimensions to the sizes `counts`. Returns NotImplemented if some size is
    not known."""
    import torch

    if not all(isinstance(size, int) and size > 0 for size in (*x.shape[2:], *counts)):
        return NotImplemented
    weights_of = _antialiased if antialias else _interpolated
    for dim in (3, 2):
        size, count, given = x.shape[dim], counts[dim - 2], scales[dim - 2]
        if size == count:
            continue
        if align_corners:
            step = (size - 1) / (count - 1) if count > 1 else 0.0
        else:
            step = 1 / given if given else size / count
        starts, weights, bits = _rounded(weights_of(size, count, step, align_corners, of))
        places = [min(one + i, size - 1) for one in starts for i in range(len(weights[0]))]
        chosen = x.int().index_select(dim, constant(places, torch.int64))
        windows = chosen.reshape(*x.shape[:dim], count, len(weights[0]), *x.shape[dim + 1 :])
        table = constant(weights, torch.int32).reshape(count, -1, *[1] * (3 - dim))
        total = (windows * table).sum(dim + 1, dtype=torch.int32) + (1 << bits >> 1)
        x = (total >> bits).clamp(0, 255).to(torch.uint8)
    return x


# The weights of one result, by the index of the element.
_Weights = dict[int, float]


def _antialiased(
    size: int, count: int, step: float, align_corners: bool, of: Filter
) -> list[_Weights]:
    """When the image is reduced, distances are in units of the result's elements."""
    del align_corners
    wide, found = max(step, 1.0), []
    for number in range(count):
        center, reach = step * (number + 0.5), of.taps / 2 * wide
        start = max(int(center - reach + 0.5), 0)
        end = min(int(center + reach + 0.5), size)
        weights = {place: of.weight((place - center + 0.5) / wide) for place in range(start, end)}
        total = sum(weights.values())
        found.append({place: weight / total for place, weight in weights.items()})
    return found


def _interpolated(
    size: int, count: int, step: float, align_corners: bool, of: Filter
) -> list[_Weights]:
    """An index outside the image is replaced by that of the edge."""
    found = []
    for number in range(count):
        place = step * number if align_corners else step * (number + 0.5) - 0.5
        if of.taps == 2:
            place = max(place, 0.0)
        before = min(math.floor(place), size - 1)
        part = min(max(place - before, 0.0), 1.0)
        weights: _Weights = {}
        for offset in range(1 - of.taps // 2, of.taps // 2 + 1):
            at = min(max(before + offset, 0), size - 1)
            weights[at] = weights.get(at, 0.0) + of.weight(offset - part)
        found.append(weights)
    return found


def _rounded(rows: Sequence[_Weights]) -> tuple[list[int], list[list[int]], int]:
    """Returns the first index of each row, the fixed-point weights from there on (rows of equal
    length), and the number of their fractional bits."""
    largest, bits = max(max(row.values()) for row in rows), 0
    while bits < _MOST_BITS and int(0.5 + largest * (1 << (bits + 1))) < _WEIGHT_BOUND:
        bits += 1
    width = max(max(row) - min(row) + 1 for row in rows)
    starts = [min(row) for row in rows]
    weights = [
        [_nearest(row.get(start + i, 0.0) * (1 << bits)) for i in range(width)]
        for start, row in zip(starts, rows, strict=True)
    ]
    return starts, weights, bits


def _nearest(x: float) -> int:
    """Rounds to the nearest integer, halves away from 0."""
    return int(x + math.copysign(0.5, x))
