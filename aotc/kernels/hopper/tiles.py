"""The coordinates of tiles of C, and the order in which blocks compute them (rasterization)."""

from __future__ import annotations

from msgspec import Struct

from aotc.builder import Builder
from aotc.builder.numbers import Number, Scalar, minimum
from aotc.kernels.hopper.smem import assembly


class Tile(Struct, frozen=True):
    """The coordinates of the first element of a tile of C, or of a part of a tile, as i32 values.
    `batch` is None if the problem is not batched."""

    row: Number
    column: Number
    batch: Number | None


def rasterize(number: Number, down: Number, across: Number, group: int) -> tuple[Number, Number]:
    """The row and the column of tile `number`, in a grid of `down` by `across` tiles.

    Tiles are numbered in groups of `group` rows of tiles, column by column in a group, so that
    tiles that are computed at the same time share rows of A and columns of B in the L2 cache.
    """
    of_group = across * group
    first = number // of_group * group
    place = number % of_group
    height = minimum(down - first, group)
    row = first + place % height
    return row, place // height


def computed_here(b: Builder, tile: Tile) -> Tile:
    """The tile, whose coordinates are forced to be computed here, before the code that follows.

    A division is a call in SASS. If a call is between MMAs and the wait for them, ptxas 13.5 reads
    accumulators before they are complete. LLVM moves the division there if its result is used only
    after the wait.
    """

    def here(number: Number) -> Number:
        if isinstance(number, int):
            return number
        return Scalar(assembly(b, "mov.b32 $0, $1;", "=r,r", [number], "i32"))

    batch = None if tile.batch is None else here(tile.batch)
    return Tile(here(tile.row), here(tile.column), batch)
