"""Fragments of wgmma's left operand in registers, of a tile that is not K-major.

wgmma reads elements of 8 and of 32 bits from shared memory only if they are K-major. Threads load
other tiles to registers. A stage has slabs of 128 bytes along M (or N) by as many elements along K,
whose rows of 128 bytes are swizzled. A lane uses two adjacent elements in M as the rows g and g + 8
of wgmma's (g: the lane's group of 4), so that wgmma's 16 rows are first the even ones of 16, then
the odd ones. The PTX manual, «Register Fragments for wgmma», defines which elements along K a lane
has.
"""

from __future__ import annotations

from aotc.builder import Builder
from aotc.builder.numbers import Number, Scalar, Value, compare
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

_CHUNK = 16  # bytes: the unit that the swizzle permutes


class Fragments:
    """Loads the fragments of a warp, which has rows of each of `m_blocks` blocks of 64 rows. `row`
    is its first row in the first block.

    `lane`, `row` and `address`, the address of the tile in the first stage, are i32.
    """

    def __init__(
        self, b: Builder, element: str, lane: Scalar, row: Number, address: Number, m_blocks: int
    ) -> None:
        self.b, self.lane = b, lane
        self.element_bytes = ELEMENT_BYTES[element]
        # The elements of a slab along either dimension.
        self.width = SWIZZLE_BYTES // self.element_bytes
        self.k_block_bytes = MMA_K_BYTES // self.element_bytes * SWIZZLE_BYTES
        self.is_odd = compare("ne", lane & 1, 0)
        if self.element_bytes == 1:
            self.selectors = self._byte_selectors()
        places = self._word_pairs if self.element_bytes == 4 else self._matrix_rows
        # The addresses that the lane reads, by block of 64 rows.
        self.addresses = [
            [address + place for place in places(row + 64 * block)] for block in range(m_blocks)
        ]

    def load(self, stage_offset: Number, block: int, k_block: int) -> list[Value]:
        """Loads the registers of one MMA, as i32. `stage_offset`: the stage's offset in bytes."""
        offset = k_block * self.k_block_bytes
        addresses = [address + stage_offset + offset for address in self.addresses[block]]
        loads = self._load_words if self.element_bytes == 4 else self._load_bytes
        return loads(addresses)

    def _in_tile(self, column: Number) -> tuple[Number, Number]:
        """The offset of the slab of an element along M, and the element's index in the slab's
        rows."""
        return column // self.width * (SWIZZLE_BYTES * self.width), column & (self.width - 1)

    # --- 32 bits -------------------------------------------------------------------------

    def _word_pairs(self, row: Number) -> list[Number]:
        """The offsets of two pairs of adjacent elements in M, which are 4 apart along K. Each lane
        of a quad has another k. Odd lanes read the pair at the larger k first, so that half a warp
        accesses all banks."""
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
        """The offset of the lane's row for a transposing ldmatrix: 16 elements along M at one k,
        which ldmatrix treats as pairs. A lane of a quad needs four consecutive elements along K:
        two pairs, from two matrices. For lanes 2 and 3 of a quad, the two matrices are exchanged,
        so that 8 rows access all banks."""
        number, matrix = self.lane & 7, self.lane >> 3
        pair = number >> 1
        second = (matrix & 1) ^ (pair >> 1)
        k = (pair << 2) + (number & 1) + (second << 1) + ((matrix >> 1) << 4)
        slab, in_row = self._in_tile(row)
        swizzled = in_row ^ (k & 7) * _CHUNK
        return [slab + (k * SWIZZLE_BYTES + swizzled)]

    def _byte_selectors(self) -> list[Value]:
        """The selectors of prmt that extract the bytes of even and of odd columns from the words of
        two matrices."""
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
