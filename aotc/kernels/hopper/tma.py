"""TMA: tensor maps of matrices, and bulk copies of tiles between these and shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul

from msgspec import Struct

from aotc.builder import Builder
from aotc.kernels.hopper.pipeline import Mbarriers
from aotc.kernels.hopper.smem import SWIZZLE_BYTES
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix
from aotc.mlir import ir
from aotc.numbers import Number, Scalar, Value, compare, maximum, select
from aotc.ops import create
from aotc.rewrites.tensor_map_types import ROUNDS_TO_TF32

_SPACE = "#gpu.address_space<workgroup>"
_ALIGNMENT = 16  # bytes: of addresses, and of the distance of rows


def is_aligned(matrix: Matrix) -> bool:
    """Whether TMA can copy tiles of the matrix.

    An `alignment` of 16 bytes is taken for that of every row, and so for that of the distance
    between two, which TMA looks at even if there is only one.
    """
    if matrix.pitch is not None:
        distance = matrix.pitch * ELEMENT_BYTES[matrix.element]
        if distance % _ALIGNMENT != 0 or (distance == 0 and 0 not in matrix.sizes):
            return False
    return matrix.alignment % _ALIGNMENT == 0


def swizzled_width(element: str) -> int:
    """Elements of a row of 128 bytes."""
    return SWIZZLE_BYTES // ELEMENT_BYTES[element]


class TensorMap(Struct, frozen=True):
    """A tensor map, the types of itself and of a tile in shared memory, as text.

    Coordinates are values of type index or ints, innermost dimension first. `shared` is the block's
    dynamic shared memory, in which a tile begins at an offset (an i32).
    """

    value: Value
    type: str
    tile: str

    def prefetch(self, b: Builder, predicate: Value) -> None:
        b.op("nvgpu.tma.prefetch.descriptor", [self.value, predicate])

    def load(
        self,
        b: Builder,
        coordinates: Sequence[Number],
        shared: Value,
        offset: Number,
        barriers: Mbarriers,
        stage: Number,
        multicast_mask: Value | None = None,
    ) -> None:
        """Copies a tile to shared memory, whose bytes the stage's mbarrier counts. With
        `multicast_mask` (i16), to all blocks of the cluster whose bits are set."""
        tile = b.view(shared, b.index(offset), self.tile)
        at = b.values(coordinates)
        mask = [] if multicast_mask is None else [multicast_mask]
        segments = ir.DenseI32ArrayAttr.get([1, 1, 1, len(at), 1, len(mask), 0])
        operands = [tile, barriers.value, self.value, *at, barriers.index(stage), *mask]
        b.op("nvgpu.tma.async.load", operands, operandSegmentSizes=segments)

    def store(
        self, b: Builder, coordinates: Sequence[Number], shared: Value, offset: Number
    ) -> None:
        """Copies a tile from shared memory; what is out of bounds is dropped."""
        tile = b.view(shared, b.index(offset), self.tile)
        at = b.values([b.index(coordinate) for coordinate in coordinates])
        segments = ir.DenseI32ArrayAttr.get([1, 1, len(at), 0])
        operands = [tile, self.value, *at]
        b.op("nvgpu.tma.async.store", operands, operandSegmentSizes=segments)


def tile_type(box: Sequence[int], element: str) -> str:
    return f"memref<{'x'.join(map(str, box))}x{element}, {_SPACE}>"


def tensor_map_type(tile: str, swizzle: int = SWIZZLE_BYTES) -> str:
    """The type of a tensor map for tiles of a type. `swizzle`: bytes of the rows that are swizzled,
    or 0. (L2 promotion to 256 bytes would fetch what nobody asks for, where rows begin at no
    multiples of 32 bytes.)"""
    mode = f"swizzle_{swizzle}b" if swizzle else "none"
    return (
        f"!nvgpu.tensormap.descriptor<tensor = {tile}, swizzle = {mode}, "
        "l2promo = l2promo_128b, oob = zero, interleave = none>"
    )


def create_tensor_map(
    b: Builder,
    memref: Value,
    matrix: Matrix,
    box: Sequence[int],
    *,
    swizzle: int = SWIZZLE_BYTES,
    in_slabs: bool = False,
    heads: int = 0,
    rounds_to_tf32: bool = False,
) -> TensorMap:
    """A tensor map of a matrix, in host code. `box`: the tile's sizes, outermost first; with
    `in_slabs`, of the matrix as slabs of 128 bytes of columns; with `heads`, its columns are two
    dimensions: so many heads, and the columns of each. `rounds_to_tf32`: elements are rounded when
    they are loaded; else the tensor cores would truncate them.

    TMA knows no size and no distance of 0. A matrix without elements is said to have some, which
    nobody reads.
    """
    base, offset, extents, distances = b.metadata(memref)
    is_empty = compare("eq", reduce(mul, extents), 0)
    least = select(is_empty, _ALIGNMENT // ELEMENT_BYTES[matrix.element], 0)
    sizes = [maximum(size, 1) for size in extents]
    strides = [maximum(stride, least) for stride in distances[:-1]]
    if in_slabs:
        width = swizzled_width(matrix.element)
        slabs = sizes[-1] // width
        sizes = [*sizes[:-2], slabs, sizes[-2], width]
        strides = [*strides[:-1], width, strides[-1]]
    if heads:
        columns = sizes[-1] // heads
        sizes, strides = [*sizes[:-1], heads, columns], [*strides, columns]
    cast = _reinterpret_cast(b, base, offset, sizes, [*strides, 1], matrix.element)
    ranked = b.op("memref.cast", [cast], f"memref<*x{matrix.element}>")
    tile = tile_type(box, matrix.element)
    type_ = tensor_map_type(tile, swizzle)
    rounds = {ROUNDS_TO_TF32: ir.UnitAttr.get()} if rounds_to_tf32 else {}
    operands = [ranked, *b.values(box)]
    made = create("nvgpu.tma.create.descriptor", operands, [b.type(type_)], rounds)
    return TensorMap(made.result, type_, tile)


def _reinterpret_cast(
    b: Builder,
    base: Value,
    offset: Scalar,
    sizes: Sequence[Number],
    strides: Sequence[Number],
    element: str,
) -> Value:
    """A memref of these sizes and strides, which are static where they are ints."""
    shape, distances = (
        [str(one) if isinstance(one, int) else "?" for one in ones] for ones in (sizes, strides)
    )
    type_ = f"memref<{'x'.join(shape)}x{element}, strided<[{', '.join(distances)}], offset: ?>>"
    return b.reinterpret_cast(base, offset, sizes, strides, type_)
