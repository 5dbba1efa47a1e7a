"""The problem of a depthwise convolution: planes of its result, and the windows of its input."""

from __future__ import annotations

from msgspec import Struct

from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm


class Window(Struct, frozen=True):
    """The windows along one spatial dimension: output o multiplies tap t by element
    o * `stride` + t * `dilation` - `padding` of the input, which is 0 outside of its `size`.

    `pitch` is the distance of consecutive elements in the input, in elements. The size, the number
    of outputs and the pitch are None if unknown: they are those of dimension `input` of A and
    `output` of C. `is_inside`: no window leaves the input.
    """

    size: int | None
    outputs: int | None
    taps: int
    stride: int
    dilation: int
    padding: int
    pitch: int | None
    is_inside: bool = False
    input: int = 0
    output: int = 0

    def reach_of(self, outputs: int) -> int:
        """The number of elements of the padded input that this number of outputs reads."""
        return (outputs - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    def likely_outputs(self, unknown: int) -> int:
        """The number of outputs, or `unknown`."""
        return unknown if self.outputs is None else self.outputs


# The height of a convolution of one spatial dimension.
NO_WINDOW = Window(
    size=1, outputs=1, taps=1, stride=1, dilation=1, padding=0, pitch=0, is_inside=True
)


class Depthwise(ImplicitGemm, frozen=True, kw_only=True):
    """A depthwise convolution as a contraction. Each row of C is a plane: one image and one output
    channel. The columns are the points of a plane, and K are the taps of its filter.

    A is the input without its padding. The loops along points and taps move in it as in the padded
    input. `height` and `width` describe the windows; one of a single spatial dimension has
    no height. `point_pitch`: the distance of consecutive points of a plane in C, in elements; None
    if it is not constant.
    """

    height: Window
    width: Window
    point_pitch: int | None
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
    def taps(self) -> int:
        """The number of elements of a filter."""
        return self.height.taps * self.width.taps


class DepthwiseChannelsLast(Depthwise, frozen=True, kw_only=True):
    """A depthwise convolution whose channels are contiguous in memory (NHWC). Each row of C is a
    point of an image, and the columns are the channels. The first `image_loops` of `rows` iterate
    over images."""

    image_loops: int
