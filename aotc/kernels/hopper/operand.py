"""The layout of A's and B's tiles in shared memory, as TMA writes and tensor cores read them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from aotc.builder import Builder
from aotc.builder.numbers import Number, Scalar, Value
from aotc.kernels.hopper.mma import MMA_K_BYTES, matrix_descriptor, swizzled_layout
from aotc.kernels.hopper.smem import SWIZZLE_BYTES
from aotc.kernels.hopper.tma import TensorMap, create_tensor_map, swizzled_width
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix

# Bytes of 64 swizzled rows: the distance between slabs of 16-bit elements.
SLAB_BYTES = 64 * SWIZZLE_BYTES


class OperandTile(Struct, frozen=True):
    """A's or B's tile in a stage. `extent` is its extent along M or N.

    A K-major tile has `extent` rows of 128 bytes along K. An MN-major tile consists of slabs: a
    slab has `k_extent` rows, one for each k, of 128 bytes along M or N. The slabs are adjacent in
    the matrix, and consecutive in shared memory. `in_one_box`: one copy brings all slabs, as the
    matrix divides into whole slabs.

    `sharers` is the number of blocks of a cluster that have the same tile. Each of them copies a
    part of it to all of them by multicast: rows, slabs, or some rows of each slab.
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
        """The tile's extent along K, in elements."""
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
        """The sizes of the box of one TMA copy, outermost first."""
        outer = (1,) if self.batched else ()
        if self.is_k_major:
            return (*outer, self.extent // self.sharers, self.k_extent)
        if self.in_one_box:
            return (*outer, self.slabs // self.sharers, self.k_extent, self.k_extent)
        return (*outer, self._slab_rows, self.k_extent)

    @property
    def _has_whole_slabs(self) -> bool:
        """Whether the part that one block copies consists of whole slabs."""
        return self.slabs % self.sharers == 0

    @property
    def _slab_rows(self) -> int:
        """The rows of a slab that one copy brings."""
        return self.k_extent if self._has_whole_slabs else self.k_extent // self.sharers

    def create_tensor_map(self, b: Builder, memref: Value) -> TensorMap:
        return create_tensor_map(
            *(b, memref, self.matrix, self.box),
            in_slabs=self.in_one_box,
            rounds_to_tf32=self.matrix.element == "f32",
        )

    @property
    def layout(self) -> int:
        """The tile's matrix descriptor without its address. (The distance between slabs is ignored
        if the tile is K-major.)"""
        return swizzled_layout(16 if self.is_k_major else SLAB_BYTES)

    def descriptor(self, b: Builder, address: Number) -> Scalar:
        return matrix_descriptor(b, address, self.layout)

    @property
    def k_step(self) -> int:
        """The difference between the descriptors of consecutive MMAs along K: 16-byte units."""
        rows = MMA_K_BYTES // ELEMENT_BYTES[self.matrix.element]
        return (MMA_K_BYTES if self.is_k_major else rows * SWIZZLE_BYTES) >> 4

    def copies(
        self, b: Builder, at: Number, k: Number, batch: Number | None, part: Number
    ) -> Iterator[tuple[Number, list[Number]]]:
        """The copies of one part of the tile. For each, its offset in the tile in bytes, and its
        coordinates, innermost first. `at`: the tile's first row or column. `part`: the index of the
        part, if blocks share the tile."""
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
