"""The parameters of a kernel, and the coordinates of a block's tile of O."""

from __future__ import annotations

from msgspec import Struct

from aotc.builder.numbers import Number
from aotc.chips import WARP

STAGES = 2  # the tiles of K, and of V, in shared memory
TILE = 16  # the rows of Q of one mma.sync


class Variant(Struct, frozen=True):
    """Parameters of a kernel.

    A block has `warps` warps, each with `tiles` tiles of 16 rows of Q. `keys`: the keys of a tile
    of K and V. `holds_q`: Q is in registers. `group`: the number of matrices of the batch that are
    rasterized together, so that their K and V stay in the L2 cache.
    """

    warps: int = 4
    tiles: int = 2
    keys: int = 32
    holds_q: bool = False
    group: int = 1

    @property
    def m(self) -> int:
        """The rows of a tile of O."""
        return TILE * self.tiles * self.warps

    @property
    def threads(self) -> int:
        return WARP * self.warps


class Tile(Struct, frozen=True):
    """A tile's first row, and its index in the batch, which includes heads. Both are i32."""

    row: Number
    batch: Number
