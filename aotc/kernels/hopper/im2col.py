"""TMA's im2col mode: one copy brings the channels of the same pixel of several windows.

The windows of a box are consecutive along the innermost spatial dimension, then along the next one,
then from image to image. A box is thus a block of rows of A of the implicit GEMM, although the
windows overlap in memory. The coordinates of a box are those of the first pixel of its first
window. The offsets select the pixel that is copied from each window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod

from msgspec import Struct

from aotc.attributes import IM2COL
from aotc.builder import Builder
from aotc.builder.numbers import Number, Scalar, Value, compare, select, unravel
from aotc.kernels.hopper.operand import OperandTile
from aotc.kernels.hopper.pipeline import Mbarriers
from aotc.kernels.hopper.smem import SWIZZLE_BYTES, shared_pointer
from aotc.kernels.hopper.tma import TensorMap, tensor_map_type, tile_type
from aotc.mlir import ir
from aotc.ops import create

# Limits of the corners, by the number of spatial dimensions: the corners of a tensor map are signed
# integers of 16, 8 or 5 bits, and the offsets in a window unsigned ones.
_FARTHEST = {1: 1 << 15, 2: 1 << 7, 3: 1 << 4}
_MOST_STEP = 8  # the largest step between windows, in pixels
_TARGET = "nvvm.cp.async.bulk.tensor.shared.cluster.global"


class WindowAxis(Struct, frozen=True):
    """A spatial dimension of a convolution. Pixels are `stride` elements apart in memory. There are
    `windows` windows, `step` pixels apart (the convolution's stride). A window has `taps` pixels,
    `dilation` apart. The first window begins `low` pixels before the image (the padding). The image
    has `size` pixels; None means that it ends with the last window. Pixels outside are 0."""

    stride: int
    windows: int = 1
    step: int = 1
    taps: int = 1
    dilation: int = 1
    low: int = 0
    size: int | None = None

    @property
    def reach(self) -> int:
        """The distance from a window's first pixel to its last one."""
        return (self.taps - 1) * self.dilation

    @property
    def pixels(self) -> int:
        if self.size is not None:
            return self.size
        return (self.windows - 1) * self.step + self.reach + 1

    @property
    def corners(self) -> tuple[int, int]:
        """The lower and the upper corner of the tensor map: the first pixel of the first window,
        relative to the image's first pixel, and the first pixel of the last window, relative to the
        image's last pixel."""
        return -self.low, (self.windows - 1) * self.step - self.low - (self.pixels - 1)


class Windows(Struct, frozen=True):
    """Images that a convolution reads by windows.

    `image_stride`: elements from one image to the next. `axes`: the spatial dimensions, outermost
    first. `tap_order`: the indices of the axes in the order in which their taps vary along K, the
    slowest first. `channels`: the channels of a pixel, which are contiguous in memory and vary
    fastest along K.
    """

    image_stride: int
    axes: tuple[WindowAxis, ...]
    tap_order: tuple[int, ...]
    channels: int

    @property
    def taps(self) -> int:
        return prod(axis.taps for axis in self.axes)

    def is_possible(self, alignment: int, element_bytes: int) -> bool:
        """Whether a tensor map can describe the windows. `alignment`: what strides must be
        multiples of, in bytes. (cuda.h wants each stride to be a multiple of the next inner
        one.)"""
        farthest = _FARTHEST.get(len(self.axes))
        strides = [self.image_stride, *(axis.stride for axis in self.axes)]
        return (
            farthest is not None
            and all(axis.step <= _MOST_STEP for axis in self.axes)
            and all(axis.reach < 2 * farthest for axis in self.axes)
            and all(-farthest <= one < farthest for axis in self.axes for one in axis.corners)
            and all(stride > 0 and stride * element_bytes % alignment == 0 for stride in strides)
            and all(outer % inner == 0 for outer, inner in pairwise(strides))
        )


class Im2colTensorMap(TensorMap, frozen=True):
    """A tensor map in im2col mode, for windows along `rank` axes."""

    rank: int

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
        """See `TensorMap`. `coordinates` ends with the offsets, innermost dimension first."""
        map_ = b.op("builtin.unrealized_conversion_cast", [self.value], "!llvm.ptr")
        begin = Scalar(b.i32(b.op("memref.extract_aligned_pointer_as_index", [shared], "index")))
        target = shared_pointer(b, begin + offset)
        mask = [] if multicast_mask is None else [multicast_mask]
        if mask:
            target = b.op("llvm.addrspacecast", [target], "!llvm.ptr<7>")
        barrier = shared_pointer(b, barriers.address(stage))
        at = [b.value(one, "i32") for one in coordinates[: self.rank + 2]]
        offsets = [_as_i16(b, one) for one in coordinates[self.rank + 2 :]]
        b.op(
            _TARGET,
            [target, map_, *at, barrier, *offsets, *mask],
            mode="#nvvm.tma_load_mode<im2col>",
            isCTAOnly=ir.BoolAttr.get(not mask),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get(
                [1, 1, len(at), 1, len(offsets), len(mask), 0, 0]
            ),
        )


def _as_i16(b: Builder, number: Number) -> Value:
    if isinstance(number, int):
        return b.constant(number, "i16")
    return b.op("arith.trunci", [number], "i16")


class Im2colTile(OperandTile, frozen=True, kw_only=True):
    """A's tile of a convolution, which is K-major. `images`: the number of images, in host code."""

    windows: Windows
    images: Number

    def create_tensor_map(self, b: Builder, memref: Value) -> Im2colTensorMap:
        windows, element = self.windows, self.matrix.element
        pixels = [axis.pixels for axis in windows.axes]
        sizes = [self.images, *pixels, windows.channels]
        strides = [windows.image_stride, *(axis.stride for axis in windows.axes), 1]
        unknown = ir.ShapedType.get_dynamic_size()
        shape = [one if isinstance(one, int) else unknown for one in sizes]
        layout = ir.StridedLayoutAttr.get(unknown, strides)
        type_ = ir.MemRefType.get(shape, b.type(element), layout)
        view = b.reinterpret_cast(memref, b.strides(memref)[0], sizes, strides, type_)
        ranked = b.op("memref.cast", [view], f"memref<*x{element}>")
        box = self.box
        tile = tile_type(box, element)
        numbers = [
            *(axis.corners[0] for axis in windows.axes),
            *(axis.corners[1] for axis in windows.axes),
            *(axis.step for axis in windows.axes),
        ]
        made = create(
            "nvgpu.tma.create.descriptor",
            [ranked, *b.values(box)],
            [b.type(tensor_map_type(tile))],
            {IM2COL: ir.DenseI64ArrayAttr.get(numbers)},
        )
        return Im2colTensorMap(made.result, tensor_map_type(tile), tile, len(windows.axes))

    def copies(
        self, b: Builder, at: Number, k: Number, batch: Number | None, part: Number
    ) -> Iterator[tuple[Number, list[Number]]]:
        """See `OperandTile`. The coordinates are followed by the offsets."""
        windows = self.windows
        first = (part if self.sharers > 1 else 0) * (self.extent // self.sharers)
        image, *places = unravel(at + first, *(axis.windows for axis in windows.axes))
        channel, taps = k, [0] * len(windows.axes)
        if windows.taps > 1:
            # Past the end of K, the channel is past the last one, so that TMA fills with zeros.
            is_inside = compare("ult", k, windows.taps * windows.channels)
            channel = select(is_inside, k % windows.channels, windows.channels)
            digits = unravel(
                k // windows.channels, *(windows.axes[i].taps for i in windows.tap_order[1:])
            )
            for axis, digit in zip(windows.tap_order, digits, strict=True):
                taps[axis] = digit
        starts = [
            place * axis.step - axis.low for place, axis in zip(places, windows.axes, strict=True)
        ]
        offsets = [tap * axis.dilation for tap, axis in zip(taps, windows.axes, strict=True)]
        coordinates = [channel, *reversed(starts), image, *reversed(offsets)]
        yield first * SWIZZLE_BYTES, coordinates
