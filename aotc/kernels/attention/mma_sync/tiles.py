"""What a block of threads makes of O: a kernel's parameters, and a tile's place."""

from __future__ import annotations

from msgspec import Struct

from aotc.chips import WARP
from aotc.numbers import Number

STAGES = 2  # tiles of K, and of V, that there is room for
TILE = 16  # rows of Q, of one mma


class Variant(Struct, frozen=True):
    """Parameters of a kernel.

    `warps`, each with `tiles` of 16 rows of Q. `keys`: of a tile of K and V. `holds_q`: Q is in
    registers. `group`: how many matrices of the batch are gone through at once, so that their K and
    V are in the L2 cache.
    """

    warps: int = 4
    tiles: int = 2
    keys: int = 32
    holds_q: bool = False
    group: int = 1

    @property
    def m(self) -> int:
        """Rows of a tile of O."""
        return TILE * self.tiles * self.warps

    @property
    def threads(self) -> int:
        return WARP * self.warps


class Tile(Struct, frozen=True):
    """A tile's first row, and its batch, which counts heads: i32 values."""

    row: Number
    batch: Number
