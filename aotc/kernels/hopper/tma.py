"""TMA: tensor maps of matrices, and bulk copies of tiles between matrices and shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul

from msgspec import Struct

from aotc.attributes import ROUNDS_TO_TF32
from aotc.builder import Builder
from aotc.builder.numbers import Number, Scalar, Value, compare, maximum, select
from aotc.kernels.hopper.pipeline import Mbarriers
from aotc.kernels.hopper.smem import SWIZZLE_BYTES
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix
from aotc.mlir import ir
from aotc.ops import create

_SPACE = "#gpu.address_space<workgroup>"
_ALIGNMENT = 16  # bytes: required of addresses and of the pitch


def is_aligned(matrix: Matrix) -> bool:
    """Whether TMA can copy tiles of the matrix.

    An `alignment` of 16 bytes holds for every row, and is assumed to hold for the pitch as well,
    which TMA checks even if there is only one row.
    """
    if matrix.pitch is not None:
        distance = matrix.pitch * ELEMENT_BYTES[matrix.element]
        if distance % _ALIGNMENT != 0 or (distance == 0 and 0 not in matrix.sizes):
            return False
    return matrix.alignment % _ALIGNMENT == 0


def swizzled_width(element: str) -> int:
    """The number of elements in a row of 128 bytes."""
    return SWIZZLE_BYTES // ELEMENT_BYTES[element]


class TensorMap(Struct, frozen=True):
    """A tensor map. `type` is its own type, and `tile` that of a tile in shared memory, as text.

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
        """Starts the copy of a tile to shared memory; the mbarrier of `stage` counts its bytes.
        With `multicast_mask` (i16), the tile is copied to all blocks of the cluster whose bits are
        set."""
        tile = b.view(shared, b.index(offset), self.tile)
        at = b.values(coordinates)
        mask = [] if multicast_mask is None else [multicast_mask]
        segments = ir.DenseI32ArrayAttr.get([1, 1, 1, len(at), 1, len(mask), 0])
        operands = [tile, barriers.value, self.value, *at, barriers.index(stage), *mask]
        b.op("nvgpu.tma.async.load", operands, operandSegmentSizes=segments)

    def store(
        self, b: Builder, coordinates: Sequence[Number], shared: Value, offset: Number
    ) -> None:
        """Starts the copy of a tile from shared memory. Elements out of bounds are not written."""
        tile = b.view(shared, b.index(offset), self.tile)
        at = b.values([b.index(coordinate) for coordinate in coordinates])
        segments = ir.DenseI32ArrayAttr.get([1, 1, len(at), 0])
        operands = [tile, self.value, *at]
        b.op("nvgpu.tma.async.store", operands, operandSegmentSizes=segments)


def tile_type(box: Sequence[int], element: str) -> str:
    return f"memref<{'x'.join(map(str, box))}x{element}, {_SPACE}>"


def tensor_map_type(tile: str, swizzle: int = SWIZZLE_BYTES) -> str:
    """The type of a tensor map for tiles of type `tile`. `swizzle`: the swizzle mode in bytes, or
    0. (L2 promotion to 256 bytes would fetch unused data where rows do not begin at multiples of 32
    bytes.)"""
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
    """Creates a tensor map of a matrix, in host code.

    `box`: the tile's sizes, outermost first. With `in_slabs`, the matrix gets a further dimension:
    slabs of 128 bytes of columns. With `heads`, its columns become two dimensions: the head, of
    which there are `heads`, and the column in the head. `rounds_to_tf32`: elements are rounded when
    they are loaded; otherwise the tensor cores would truncate them.

    TMA supports no size and no stride of 0. For a matrix without elements, the tensor map has
    nonzero sizes and strides; its elements are never read.
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
    """A memref of the given sizes and strides. Those that are ints are static in its type."""
    shape, distances = (
        [str(one) if isinstance(one, int) else "?" for one in ones] for ones in (sizes, strides)
    )
    type_ = f"memref<{'x'.join(shape)}x{element}, strided<[{', '.join(distances)}], offset: ?>>"
    return b.reinterpret_cast(base, offset, sizes, strides, type_)
