"""Where tiles of C are, and the order in which blocks compute them."""

from __future__ import annotations

from msgspec import Struct

from aotc.builder import Builder
from aotc.kernels.hopper.smem import assembly
from aotc.numbers import Number, Scalar, minimum


class Tile(Struct, frozen=True):
    """The first element of a tile of C, or of a part of one: i32 values. `batch` is None where the
    problem has none."""

    row: Number
    column: Number
    batch: Number | None


def rasterize(number: Number, down: Number, across: Number, group: int) -> tuple[Number, Number]:
    """The row and the column of a tile, in a grid of `down` by `across` tiles, by its number.

    Tiles are numbered down `group` rows of tiles, then across, then in the next rows, so that tiles
    that are computed at the same time share rows of A and columns of B in the L2 cache.
    """
    of_group = across * group
    first = number // of_group * group
    place = number % of_group
    height = minimum(down - first, group)
    row = first + place % height
    return row, place // height


def computed_here(b: Builder, tile: Tile) -> Tile:
    """The tile, computed in front of what follows.

    A division is a call in SASS. Between MMAs and what waits for them it makes ptxas 13.5 read
    accumulators that are not there yet, and LLVM moves it there if its result is used behind them.
    """

    def here(number: Number) -> Number:
        if isinstance(number, int):
            return number
        return Scalar(assembly(b, "mov.b32 $0, $1;", "=r,r", [number], "i32"))

    batch = None if tile.batch is None else here(tile.batch)
    return Tile(here(tile.row), here(tile.column), batch)
