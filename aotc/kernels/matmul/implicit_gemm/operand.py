"""The offsets of elements of a contraction's operands, as layouts of loops in the sense of CuTe.

Everything here is built in host code, except `Layout.offset`, which kernels use.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from msgspec import Struct

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Value
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, Loop
from aotc.kernels.matmul.problem import Arguments

# Numbers below this limit are divided in 32 bits.
_END_OF_SHORT = 2**31


class Mode(Struct, frozen=True):
    """A mode of a layout: an index below `size`, each step of which is `stride` elements."""

    size: Number
    stride: Number


class Layout:
    """Maps a linear index to an offset in elements. The index is unraveled over `modes`, the
    slowest first."""

    def __init__(self, b: Builder, modes: Sequence[Mode]) -> None:
        self.b, self.modes = b, tuple(modes)

    def offset(self, number: Number) -> Number:
        if not self.modes or number == 0:
            return 0
        total: Number = 0
        for mode in reversed(self.modes[1:]):
            number, digit = self._divide(number, mode.size)
            total = total + digit * mode.stride
        return total + number * self.modes[0].stride

    def _divide(self, number: Number, by: Number) -> tuple[Number, Number]:
        """The quotient and the remainder, in 32 bits if they suffice, which is far faster."""
        if isinstance(number, int) or not self._is_short or by == 1:
            return number // by, number % by
        b, short = self.b, self.b.signed_cast(number, "i32")
        return b.index(short // by), b.index(short % by)

    @property
    def _is_short(self) -> bool:
        known = [mode.size for mode in self.modes if isinstance(mode.size, int)]
        return len(known) == len(self.modes) and prod(known) < _END_OF_SHORT


class Operand:
    """A, B or C as a buffer of one dimension, and the layouts of the problem's loops in it: those
    of the batch, of M, of N and of K."""

    def __init__(self, b: Builder, problem: ImplicitGemm, arguments: Arguments, name: str) -> None:
        number = "abc".index(name)
        memref, strides = arguments.values[number], problem.strides[number]
        begin, found = b.strides(memref)
        steps = [own if known is None else known for own, known in zip(found, strides, strict=True)]
        roles = (problem.batch, problem.rows, problem.columns, problem.k_loops)
        sizes = {
            loop: size_of(b, arguments, loop)
            for loop in (*problem.batch, *problem.rows, *problem.columns, *problem.k_loops)
        }

        def layout(loops: Sequence[Loop]) -> Layout:
            modes = []
            for loop in loops:
                stride: Number = 0
                for dimension, factor in getattr(loop, name):
                    stride = stride + steps[dimension] * factor
                modes.append(Mode(sizes[loop], stride))
            return Layout(b, _coalesced(modes))

        self.batch, self.m, self.n, self.k = (layout(loops) for loops in roles)
        extent: Number = 1
        for one in (self.batch, self.m, self.n, self.k):
            for mode in one.modes:
                extent = extent + (mode.size - 1) * mode.stride
        row = _row_of_elements(b, memref, begin, extent)
        self.buffer = Buffer(row, unsigned=getattr(problem, name).unsigned)


def _coalesced(modes: Sequence[Mode]) -> list[Mode]:
    """The modes, with adjacent ones merged if they are contiguous."""
    found: list[Mode] = []
    for mode in modes:
        if found and found[-1].stride == mode.size * mode.stride:
            mode = Mode(found.pop().size * mode.size, mode.stride)
        found.append(mode)
    return found


def _row_of_elements(b: Builder, memref: Value, begin: Number, extent: Number) -> Value:
    type_ = f"memref<?x{Buffer(memref).element}, strided<[1], offset: ?>>"
    return b.reinterpret_cast(memref, begin, [b.value(extent)], [1], type_)


def size_of(b: Builder, arguments: Arguments, loop: Loop) -> Number:
    if loop.size is not None:
        return loop.size
    name, dimension = loop.source
    return b.dim(arguments.values["abc".index(name)], dimension)


def count_of(b: Builder, arguments: Arguments, loops: Sequence[Loop]) -> Number:
    """The number of iterations of the loops together."""
    count: Number = 1
    for loop in loops:
        count = count * size_of(b, arguments, loop)
    return count
