"""The problem of a depthwise convolution: planes of its result, and the windows of its input."""

from __future__ import annotations

from math import prod

from msgspec import Struct

from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm


class Window(Struct, frozen=True):
    """The windows along one spatial dimension: output o multiplies tap t by element
    o * `stride` + t * `dilation` - `padding` of the input, which is 0 outside of its `size`.

    `pitch` is the distance of consecutive elements in the input, in elements.
    """

    size: int
    outputs: int
    taps: int
    stride: int
    dilation: int
    padding: int
    pitch: int

    @property
    def reach(self) -> int:
        """The number of elements of the padded input that are read."""
        return (self.outputs - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    @property
    def used(self) -> int:
        """The number of elements of the input that are read, counted from its first."""
        return max(0, min(self.size, self.reach - self.padding))


# The height of a convolution of one spatial dimension.
NO_WINDOW = Window(size=1, outputs=1, taps=1, stride=1, dilation=1, padding=0, pitch=0)


class Depthwise(ImplicitGemm, frozen=True, kw_only=True):
    """A depthwise convolution as a contraction. Each row of C is a plane: one image and one output
    channel. The columns are the points of a plane, and K are the taps of its filter.

    A is the input without its padding. The loops along points and taps move in it as in the padded
    input. `height` and `width` describe the windows; one of a single spatial dimension has
    no height.
    """

    height: Window
    width: Window
    # A's zero point: what is multiplied is the difference, which is 0 outside.
    zero: int = 0

    @property
    def operation(self) -> str:
        """See `Problem`."""
        return "_".join(("depthwise_conv", *self._elements()))

    @property
    def name(self) -> str:
        return "convolution"

    @property
    def has_slow_loops(self) -> bool:
        return True

    @property
    def points(self) -> int:
        """The number of elements of a plane of C."""
        return prod((self.height.outputs, self.width.outputs))

    @property
    def taps(self) -> int:
        """The number of elements of a filter."""
        return self.height.taps * self.width.taps


class DepthwiseChannelsLast(Depthwise, frozen=True, kw_only=True):
    """A depthwise convolution whose channels are contiguous in memory (NHWC). Each row of C is a
    point of an image, and the columns are the channels. The first `image_loops` of `rows` iterate
    over images."""

    image_loops: int
