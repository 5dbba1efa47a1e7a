"""The tiles of accumulators of the mainloops of both layouts, and their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import mean

from aotc.kernels.matmul.depthwise.problem import Depthwise, Window

_MOST_ACCUMULATORS = 8
# With fewer accumulators, multiply-adds wait for each other.
_LEAST_ACCUMULATORS = 6
# The size of a block's memory: half of a first-level cache.
BAND_BYTES = 24 << 10
# The smallest number of multiply-adds of vectors in a block, if there is enough work.
BLOCK_WORK = 4096

# The number of outputs along a dimension of an image of unknown size: blocks are chosen for large
# images, which take long. Tiles are chosen for all of _LIKELY_OUTPUTS.
LARGE_IMAGE = 64
_LIKELY_OUTPUTS = (7, 14, 28, 56, 112)

# An input vector's offset, and the pairs of an accumulator and a tap that use it.
InputVector = tuple[int, list[tuple[int, int]]]


def tiles() -> list[tuple[int, int]]:
    """The candidate shapes of a tile: its rows and columns of vectors of accumulators."""
    return [
        (rows, columns)
        for rows in range(1, _MOST_ACCUMULATORS + 1)
        for columns in range(1, _MOST_ACCUMULATORS // rows + 1)
    ]


def tile_cost(problem: Depthwise, rows: int, columns: int, loads: int) -> int:
    """The estimated cost of a tile: its multiply-adds, and the loads of inputs and taps."""
    return (max(rows * columns, _LEAST_ACCUMULATORS) + 1) * problem.taps + loads


def mean_waste(problem: Depthwise, rows: int, columns: int) -> Fraction:
    """The number of points that tiles of `rows` x `columns` compute for each point of an image: the
    mean over the likely sizes, if the size is not known."""
    return _waste(problem.height, rows) * _waste(problem.width, columns)


def _waste(window: Window, size: int) -> Fraction:
    counts = _LIKELY_OUTPUTS if window.outputs is None else (window.outputs,)
    return mean(Fraction(-(-count // size) * size, count) for count in counts)


def inputs_along(window: Window, count: int) -> int:
    """The number of inputs along a dimension that `count` consecutive outputs read."""
    return min((count - 1) * window.stride + window.taps, count * window.taps)


def input_vectors(
    taps: Sequence[int], rows: int, columns: int, steps: tuple[int, int]
) -> list[InputVector]:
    """The input vectors of a tile, ordered by their offsets. `taps`: the offset of each tap's input
    for the first accumulator. `steps`: the distances to the inputs of the next row and of the next
    column."""
    found: dict[int, list[tuple[int, int]]] = {}
    for tap, first in enumerate(taps):
        for number in range(rows * columns):
            row, column = divmod(number, columns)
            offset = first + row * steps[0] + column * steps[1]
            found.setdefault(offset, []).append((number, tap))
    return sorted(found.items())
