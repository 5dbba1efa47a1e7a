"""The sizes of a convolution's windows in kernels, where some are only known at run time."""

from __future__ import annotations

from msgspec import Struct

from aotc.builder import Builder
from aotc.builder.numbers import Number
from aotc.kernels.matmul.depthwise.problem import Depthwise, Window
from aotc.kernels.matmul.problem import Arguments


class Extent(Struct, frozen=True):
    """The size, the number of outputs and the pitch of a `Window`."""

    size: Number
    outputs: Number
    pitch: Number


def extents_of(b: Builder, problem: Depthwise, arguments: Arguments) -> tuple[Extent, Extent]:
    """The extents of the height and of the width. Built in host code."""
    a, _, c = arguments.values[:3]

    def extent(window: Window) -> Extent:
        size, outputs, pitch = window.size, window.outputs, window.pitch
        return Extent(
            b.dim(a, window.input) if size is None else size,
            b.dim(c, window.output) if outputs is None else outputs,
            b.strides(a)[1][window.input] if pitch is None else pitch,
        )

    return extent(problem.height), extent(problem.width)
