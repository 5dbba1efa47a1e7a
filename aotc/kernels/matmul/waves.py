"""Which kernel computes which rows of C, if sizes are unknown.

A wave is a tile for each multiprocessor of a large GPU. The last wave takes as long as the others,
however few tiles it has: 1576 x 3072 has 168 tiles of 256x128, which take as long as 264. So the
program computes the rows of whole waves by the kernel of large tiles, and the rows after them by
that of the smallest tiles, in parts of K. All numbers are those of host code.
"""

from __future__ import annotations

from msgspec import Struct

from aotc.builder.numbers import (
    Condition,
    Number,
    ceil_divide,
    compare,
    maximum,
    minimum,
    select,
)
from aotc.chips import H100

# The fewest elements of K that a part has, and the most parts, if the program chooses their number.
LEAST_PART, MOST_PARTS = 128, 32
# With more waves of small tiles, the buffer of their partial accumulators is large.
_MOST_WAVES = 4
# The candidates for the parts: as many as fill the least number of waves, or up to so many more,
# and these numbers.
_MORE_WAVES, _FEW_PARTS = 2, (2, 3)
# The clocks of the launch of the kernel that adds parts. Of a partial accumulator, a multiprocessor
# takes one to store and to add it.
_SUM_CLOCKS = 6000
_AT_ONCE = H100.multiprocessors


class Shape(Struct, frozen=True):
    """The sizes of a matmul. `batches`: the number of matrices."""

    m: Number
    n: Number
    k: Number
    batches: Number = 1

    def tiles(self, rows: Number, tile: tuple[int, int]) -> Number:
        """The number of tiles, given as their rows and columns, of so many rows of C."""
        return ceil_divide(rows, tile[0]) * self.tiles_across(tile)

    def tiles_across(self, tile: tuple[int, int]) -> Number:
        return ceil_divide(self.n, tile[1]) * self.batches


class Tiles(Struct, frozen=True):
    """The tiles of a kernel: their rows and columns, and the clocks of a wave of them. Fewer than
    `least_waves` waves take as long as those. With `has_parts`, the program chooses in how many
    parts of K the tiles are computed, which should fill as many waves. `are_alone`: a
    multiprocessor runs one at a time. (Of others, such as 128x64, it sometimes gets two while
    another one has none: 132 of them take as long as 264.)"""

    size: tuple[int, int]
    clocks: Number
    has_parts: bool = False
    least_waves: int = 1
    are_alone: bool = True


def clocks_of_tiles(count: Number, tiles: Tiles) -> Number:
    """The expected clocks of whole tiles."""
    return maximum(ceil_divide(count, _AT_ONCE), tiles.least_waves) * tiles.clocks


def parts_of_tiles(shape: Shape, rows: Number, tiles: Tiles) -> tuple[Number, Number]:
    """The number of parts of K for so many rows of C, and the expected clocks. The parts fill a few
    waves."""
    count = shape.tiles(rows, tiles.size)
    if not tiles.has_parts:
        return 1, clocks_of_tiles(count, tiles)
    most = maximum(minimum(shape.k // LEAST_PART, MOST_PARTS), 1)
    sums = ceil_divide(rows * shape.n * shape.batches, _AT_ONCE)
    waves = range(tiles.least_waves, tiles.least_waves + _MORE_WAVES + 1)
    counts = [number * _AT_ONCE // maximum(count, 1) for number in waves]
    best: tuple[Number, Number] | None = None
    for wanted in (*counts, *_FEW_PARTS):
        parts = maximum(minimum(wanted, most), 1)
        clocks = clocks_of_tiles(count * parts, tiles) // parts + sums * (parts + 1)
        if best is None:
            best = parts, clocks
        else:
            is_better = _is_less(clocks, best[1])
            best = select(is_better, parts, best[0]), select(is_better, clocks, best[1])
    assert best is not None
    # A selection alone would be computed again in the kernel.
    return minimum(best[0], MOST_PARTS), best[1] + _SUM_CLOCKS


def has_many_waves(shape: Shape, tiles: Tiles) -> Condition:
    """Whether C has too many tiles to compute all of them in parts of K."""
    return compare("ugt", shape.tiles(shape.m, tiles.size), _MOST_WAVES * _AT_ONCE)


def rows_of_waves(shape: Shape, large: Tiles, small: Tiles) -> tuple[Number, Number]:
    """The rows of the large tiles, where the small ones compute the others, and the expected clocks
    of both."""
    across = shape.tiles_across(large.size)
    count = shape.tiles(shape.m, large.size)
    whole_rows = count // _AT_ONCE * _AT_ONCE // maximum(across, 1)
    rows = minimum(whole_rows * large.size[0], shape.m)
    all_clocks = clocks_of_tiles(count, large)
    if not large.are_alone:
        return shape.m, all_clocks
    _, rest = parts_of_tiles(shape, shape.m - rows, small)
    clocks = ceil_divide(whole_rows * across, _AT_ONCE) * large.clocks + rest
    is_better = _is_less(clocks, all_clocks)
    return select(is_better, rows, shape.m), select(is_better, clocks, all_clocks)


def _is_less(one: Number, other: Number) -> Condition:
    if isinstance(one, int) and isinstance(other, int):
        return one < other
    return compare("ult", one, other)
