"""Where tiles of C are, and the order in which blocks compute them."""

from __future__ import annotations

from msgspec import Struct

from aotc.numbers import Number, minimum


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
