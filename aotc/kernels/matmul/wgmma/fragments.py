"""A left operand of wgmma in registers: fragments of a tile that is not K-major.

wgmma reads elements of 8 and of 32 bits from shared memory only if they are K-major. Other tiles
are read by threads: a stage has slabs of 128 bytes of neighbours in M (or N) by as many elements of
K, whose rows of 128 bytes are swizzled. A lane has two neighbours in M as rows g and g + 8 of
wgmma's (g: the lane's group of 4); so 16 rows are the even ones of 16 and then the odd ones. The
PTX manual says which elements of K a lane has, «Register Fragments for wgmma».
"""

from __future__ import annotations

from aotc.builder import Builder
from aotc.kernels.hopper.mma import MMA_K_BYTES
from aotc.kernels.hopper.smem import (
    SWIZZLE_BYTES,
    assembly,
    ldmatrix,
    load,
    shared_pointer,
    unpack,
)
from aotc.kernels.matmul.problem import ELEMENT_BYTES
from aotc.numbers import Number, Scalar, Value, compare

_CHUNK = 16  # bytes, which a swizzle moves


class Fragments:
    """Loads the fragments of a warp, whose rows begin at `row` of the tile and of each 64 after it,
    of `m_blocks` times 64 rows.

    `lane` and `row` are i32, as is `address`: of the first stage's tile.
    """

    def __init__(
        self, b: Builder, element: str, lane: Scalar, row: Number, address: Number, m_blocks: int
    ) -> None:
        self.b, self.lane = b, lane
        self.element_bytes = ELEMENT_BYTES[element]
        # Elements of a slab, each way.
        self.width = SWIZZLE_BYTES // self.element_bytes
        self.k_block_bytes = MMA_K_BYTES // self.element_bytes * SWIZZLE_BYTES
        self.is_odd = compare("ne", lane & 1, 0)
        if self.element_bytes == 1:
            self.selectors = self._byte_selectors()
        places = self._word_pairs if self.element_bytes == 4 else self._matrix_rows
        # Where the lane reads, by block of 64 rows.
        self.addresses = [
            [address + place for place in places(row + 64 * block)] for block in range(m_blocks)
        ]

    def load(self, stage_offset: Number, block: int, k_block: int) -> list[Value]:
        """The registers of one MMA, as i32, of a stage at an offset in bytes."""
        offset = k_block * self.k_block_bytes
        addresses = [address + stage_offset + offset for address in self.addresses[block]]
        loads = self._load_words if self.element_bytes == 4 else self._load_bytes
        return loads(addresses)

    def _in_tile(self, column: Number) -> tuple[Number, Number]:
        """Where the slab of an element of M begins, and its place in the slab's rows."""
        return column // self.width * (SWIZZLE_BYTES * self.width), column & (self.width - 1)

    # --- 32 bits -------------------------------------------------------------------------

    def _word_pairs(self, row: Number) -> list[Number]:
        """Two places, of neighbours in M. Lanes of a quad have one element of K each, and another
        one 4 behind it: odd lanes read that first, and so half a warp reads from all banks."""
        quad = self.lane & 3
        first_k = quad ^ (quad & 1) << 2
        slab, column = self._in_tile(row + ((self.lane >> 2) << 1))
        in_row = column << 2
        places = []
        for k in (first_k, first_k ^ 4):
            swizzled = in_row ^ k * _CHUNK
            places.append(slab + (k * SWIZZLE_BYTES + swizzled))
        return places

    def _load_words(self, addresses: list[Number]) -> list[Value]:
        b = self.b
        one, other = (
            b.elements(load(b, shared_pointer(b, address), "vector<2xi32>", 8))
            for address in addresses
        )
        return [
            b.select(self.is_odd, early[side], late[side])
            for early, late in ((other, one), (one, other))
            for side in range(2)
        ]

    # --- 8 bits --------------------------------------------------------------------------

    def _matrix_rows(self, row: Number) -> list[Number]:
        """Where the lane's row of a transposing ldmatrix is: 16 neighbours in M of one K, which
        become pairs. A lane of a quad needs four of K behind each other: two pairs, from two
        matrices. Of quads' lanes 2 and 3, these are exchanged, and so 8 rows are in all banks."""
        number, matrix = self.lane & 7, self.lane >> 3
        pair = number >> 1
        second = (matrix & 1) ^ (pair >> 1)
        k = (pair << 2) + (number & 1) + (second << 1) + ((matrix >> 1) << 4)
        slab, in_row = self._in_tile(row)
        swizzled = in_row ^ (k & 7) * _CHUNK
        return [slab + (k * SWIZZLE_BYTES + swizzled)]

    def _byte_selectors(self) -> list[Value]:
        """How bytes of two matrices become those of even columns, and of odd ones (prmt)."""
        b = self.b
        is_late = compare("ne", self.lane & 2, 0)
        return [
            b.select(is_late, b.constant(late, "i32"), b.constant(early, "i32"))
            for early, late in ((0x6420, 0x2064), (0x7531, 0x3175))
        ]

    def _load_bytes(self, addresses: list[Number]) -> list[Value]:
        b, [address] = self.b, addresses
        matrices = ldmatrix(b, shared_pointer(b, address), transposes=True)
        words = unpack(b, matrices, "i32", range(4))
        return [
            assembly(
                *(b, "prmt.b32 $0, $1, $2, $3;", "=r,r,r,r", [*pair, selector], "i32"),
                has_side_effects=False,
            )
            for pair in (words[:2], words[2:])
            for selector in self.selectors
        ]
