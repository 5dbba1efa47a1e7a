"""What the mainloops of both layouts have in common: tiles of accumulators, and their inputs."""

from __future__ import annotations

from collections.abc import Sequence

from aotc.kernels.matmul.depthwise.problem import Depthwise, Window

_MOST_ACCUMULATORS = 8
# With fewer, multiply-adds wait for each other.
_LEAST_ACCUMULATORS = 6
# Of a block's memory: half of a first-level cache.
BAND_BYTES = 24 << 10
# Multiply-adds of vectors that a block has at least, where there is enough to do.
BLOCK_WORK = 4096

# An input vector's offset, and the accumulators and taps that it is for.
InputVector = tuple[int, list[tuple[int, int]]]


def tiles() -> list[tuple[int, int]]:
    """The rows and columns of vectors that the accumulators in registers may be of."""
    return [
        (rows, columns)
        for rows in range(1, _MOST_ACCUMULATORS + 1)
        for columns in range(1, _MOST_ACCUMULATORS // rows + 1)
    ]


def tile_cost(problem: Depthwise, rows: int, columns: int, loads: int) -> int:
    """About how long a tile takes: its multiply-adds, and the loads of inputs and of taps."""
    return (max(rows * columns, _LEAST_ACCUMULATORS) + 1) * problem.taps + loads


def inputs_along(window: Window, count: int) -> int:
    """The number of inputs along a dimension that some neighbouring outputs have."""
    return min((count - 1) * window.stride + window.taps, count * window.taps)


def input_vectors(
    taps: Sequence[int], rows: int, columns: int, steps: tuple[int, int]
) -> list[InputVector]:
    """The inputs of a tile, by their offsets. `taps`: the offset of each tap's input for the first
    accumulator; `steps`: how far the next row's and the next column's is behind it."""
    found: dict[int, list[tuple[int, int]]] = {}
    for tap, first in enumerate(taps):
        for number in range(rows * columns):
            row, column = divmod(number, columns)
            offset = first + row * steps[0] + column * steps[1]
            found.setdefault(offset, []).append((number, tap))
    return sorted(found.items())
