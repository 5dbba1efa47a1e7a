"""The layout of A's and B's tiles in shared memory, as TMA writes and tensor cores read them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from aotc.builder import Builder
from aotc.kernels.hopper.mma import MMA_K_BYTES, matrix_descriptor, swizzled_layout
from aotc.kernels.hopper.smem import SWIZZLE_BYTES
from aotc.kernels.hopper.tma import TensorMap, create_tensor_map, swizzled_width
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix
from aotc.numbers import Number, Scalar, Value

# Bytes of 64 swizzled rows: from one slab to the next, of elements of 16 bits.
SLAB_BYTES = 64 * SWIZZLE_BYTES


class OperandTile(Struct, frozen=True):
    """A's or B's tile in a stage, of `extent` rows or columns of C's tile.

    If it is K-major, it is `extent` rows of 128 bytes of K. Else it is slabs, each as many rows of
    K of 128 bytes, which are neighbours in the matrix and follow each other in shared memory.
    `in_one_box`: one copy brings all slabs, as the matrix divides into slabs.

    So many blocks of a cluster have the same tile: they are its `sharers`. Each of them copies a
    part of it, to all: rows, slabs, or some of each slab's rows.
    """

    matrix: Matrix
    extent: int
    is_k_major: bool
    in_one_box: bool
    batched: bool
    sharers: int = 1

    @staticmethod
    def of(
        matrix: Matrix, extent: int, *, is_k_major: bool, batched: bool, sharers: int = 1
    ) -> OperandTile:
        columns = matrix.sizes[1]
        width = swizzled_width(matrix.element)
        in_one_box = (
            not is_k_major
            and extent % (width * sharers) == 0
            and columns is not None
            and columns % width == 0
        )
        return OperandTile(matrix, extent, is_k_major, in_one_box, batched, sharers)

    @property
    def k_extent(self) -> int:
        """Elements of K."""
        return swizzled_width(self.matrix.element)

    @property
    def slabs(self) -> int:
        return -(-self.extent // self.k_extent)

    @property
    def bytes(self) -> int:
        return self.extent * SWIZZLE_BYTES if self.is_k_major else self.slabs * self.slab_bytes

    @property
    def slab_bytes(self) -> int:
        return self.k_extent * SWIZZLE_BYTES

    @property
    def box(self) -> tuple[int, ...]:
        """The sizes of one copy, outermost first."""
        outer = (1,) if self.batched else ()
        if self.is_k_major:
            return (*outer, self.extent // self.sharers, self.k_extent)
        if self.in_one_box:
            return (*outer, self.slabs // self.sharers, self.k_extent, self.k_extent)
        return (*outer, self._slab_rows, self.k_extent)

    @property
    def _has_whole_slabs(self) -> bool:
        """Whether a part of the tile is slabs."""
        return self.slabs % self.sharers == 0

    @property
    def _slab_rows(self) -> int:
        """The rows of a slab that one copy has."""
        return self.k_extent if self._has_whole_slabs else self.k_extent // self.sharers

    def create_tensor_map(self, b: Builder, memref: Value) -> TensorMap:
        return create_tensor_map(
            *(b, memref, self.matrix, self.box),
            in_slabs=self.in_one_box,
            rounds_to_tf32=self.matrix.element == "f32",
        )

    @property
    def layout(self) -> int:
        """The tile's matrix descriptor without its address. (How far apart slabs are has no meaning
        if the tile is K-major.)"""
        return swizzled_layout(16 if self.is_k_major else SLAB_BYTES)

    def descriptor(self, b: Builder, address: Number) -> Scalar:
        return matrix_descriptor(b, address, self.layout)

    @property
    def k_step(self) -> int:
        """From an MMA's descriptor to that of the next one along K."""
        rows = MMA_K_BYTES // ELEMENT_BYTES[self.matrix.element]
        return (MMA_K_BYTES if self.is_k_major else rows * SWIZZLE_BYTES) >> 4

    def copies(
        self, b: Builder, at: Number, k: Number, batch: Number | None, part: Number
    ) -> Iterator[tuple[Number, list[Number]]]:
        """Each copy of a part of the tile: its offset in the tile in bytes, and its coordinates,
        innermost first. `at`: the tile's first row or column. `part`: which one, where the tile is
        shared."""
        outer = [] if batch is None else [b.index(batch)]
        part = part if self.sharers > 1 else 0
        if self.is_k_major:
            first = part * (self.extent // self.sharers)
            offset = first * SWIZZLE_BYTES
            yield offset, [b.index(k), b.index(at + first), *outer]
        elif self.in_one_box:
            first = part * (self.slabs // self.sharers)
            slab = at // self.k_extent + first
            offset = first * self.slab_bytes
            yield offset, [0, b.index(k), b.index(slab), *outer]
        elif self._has_whole_slabs:
            count = self.slabs // self.sharers
            first = part * count
            for number in range(count):
                slab = first + number
                column = at + slab * self.k_extent
                yield slab * self.slab_bytes, [b.index(column), b.index(k), *outer]
        else:
            row = part * self._slab_rows
            k_index = b.index(k + row)
            offset = row * SWIZZLE_BYTES
            for number in range(self.slabs):
                column = b.index(at + self.k_extent * number)
                yield offset + number * self.slab_bytes, [column, k_index, *outer]
