"""Tiles of a mask in Hopper's kernel, which TMA copies to a ring if rows are aligned to 16
bytes."""

from __future__ import annotations

from aotc.builder import Builder
from aotc.builder.numbers import Float, Number, Scalar, Value
from aotc.kernels.attention.masks import outer_index
from aotc.kernels.attention.operands import KEY, QUERY
from aotc.kernels.attention.problem import Mask
from aotc.kernels.hopper.smem import SWIZZLE_BYTES, load, shared_pointer
from aotc.kernels.hopper.tma import TensorMap, create_tensor_map
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix

_CHUNK = 16  # bytes: the unit that the swizzle permutes, and that TMA's rows are multiples of
_MOST_DIMENSIONS = 5  # the limit of a tensor map
_STAGE_ALIGNMENT = 1024  # bytes


def has_tiles(mask: Mask | None) -> bool:
    """Whether there is a mask, and TMA can copy its tiles."""
    if mask is None:
        return False
    # A box along two dimensions of queries would be a cube, of which only the diagonal is needed.
    is_tile = mask.places.count(QUERY) <= 1
    return is_tile and mask.alignment % _CHUNK == 0 and len(mask.places) <= _MOST_DIMENSIONS


class MaskTiles:
    """The tiles of a mask, of `rows` queries and `keys` keys: consecutive slabs of 128-byte rows,
    swizzled. A mask that is the same for all queries has one row, as long as a tile."""

    def __init__(self, mask: Mask, rows: int, keys: int) -> None:
        self.mask, self.keys = mask, keys
        self.element_bytes = ELEMENT_BYTES[mask.element]
        self.has_rows = QUERY in mask.places
        self.width = SWIZZLE_BYTES // self.element_bytes if self.has_rows else keys
        self.slabs = -(-keys // self.width)
        self.slab_bytes = (rows if self.has_rows else 1) * self.width * self.element_bytes
        # The bytes that are copied, and those of a stage.
        self.bytes = self.slabs * self.slab_bytes
        self.stage_bytes = -(-self.bytes // _STAGE_ALIGNMENT) * _STAGE_ALIGNMENT
        self.box = tuple({QUERY: rows, KEY: self.width}.get(place, 1) for place in mask.places)

    def create_tensor_map(self, b: Builder, memref: Value) -> TensorMap:
        mask = self.mask
        matrix = Matrix(mask.type, mask.element, (None, None), None, mask.alignment)
        swizzle = SWIZZLE_BYTES if self.has_rows else 0
        return create_tensor_map(b, memref, matrix, self.box, swizzle=swizzle)

    def copies(
        self, b: Builder, batch: Number, row: Number, first: Number
    ) -> list[tuple[int, list[Number]]]:
        """The copies of a tile. For each, its offset in the tile, and its coordinates in the mask,
        innermost first. `first`: the tile's first key."""
        outer = outer_index(b, self.mask, batch, b.index(row))[::-1]
        return [
            (slab * self.slab_bytes, [b.index(first + slab * self.width), *outer])
            for slab in range(self.slabs)
        ]

    def begin(self, b: Builder, row: Number, lane: Scalar) -> None:
        """Prepares `load`. `row`: the first row of this thread's warp in the tile."""
        self.b = b
        in_row: Number = (lane & 3) * (2 * self.element_bytes)
        self.own = in_row
        if self.has_rows:
            # A row's chunks are swizzled by its number modulo 8.
            number = lane >> 2
            swizzled = in_row ^ number * _CHUNK
            self.own = (row + number) * SWIZZLE_BYTES + swizzled

    def load(self, address: Number) -> list[Float]:
        """The mask tile at an address in shared memory, in the order of scores."""
        b, pair = self.b, f"vector<2x{self.mask.element}>"
        own = address + self.own
        found = []
        for group in range(0, self.keys, 8):
            slab, place = divmod(group, self.width)
            place *= self.element_bytes
            at = (own ^ place if self.has_rows else own + place) + slab * self.slab_bytes
            for half in range(2):
                below = half * 8 * SWIZZLE_BYTES if self.has_rows else 0
                both = load(b, shared_pointer(b, at + below), pair, 2 * self.element_bytes)
                found += [b.convert(b.extract(both, [side]), "f32") for side in range(2)]
        return found
