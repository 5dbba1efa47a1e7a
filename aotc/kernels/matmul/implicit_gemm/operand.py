"""The offsets of elements of a contraction's operands, as layouts of loops in the sense of CuTe.

Everything here is built in host code, except `Layout.offset`, which kernels use. A GPU takes dozens
of instructions to divide by a size that only the program knows. In kernels for GPUs, the quotient
is the high half of a product with the size's reciprocal, which the host computes: floor(n / d) =
floor(n * ceil(2**64 / d) / 2**64), if n * d < 2**64 (Granlund and Montgomery, 1994).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from msgspec import Struct

from aotc import ops
from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Value, compare, maximum, select, wrap
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, Loop
from aotc.kernels.matmul.problem import Arguments
from aotc.mlir import ir

# Numbers below this limit are divided in 32 bits.
_END_OF_SHORT = 2**31


class Mode(Struct, frozen=True):
    """A mode of a layout: an index below `size`, each step of which is `stride` elements."""

    size: Number
    stride: Number


class Layout:
    """Maps a linear index to an offset in elements. The index is unraveled over `modes`, the
    slowest first. `for_gpu`: a GPU's kernel computes offsets."""

    def __init__(self, b: Builder, modes: Sequence[Mode], *, for_gpu: bool = False) -> None:
        self.b, self.modes = b, tuple(modes)
        # Size → its reciprocal.
        self._reciprocals: dict[Value, Value] = {}
        for mode in self.modes[1:] if for_gpu else ():
            if not isinstance(mode.size, int):
                self._reciprocals[mode.size] = self._reciprocal(mode.size)

    def _reciprocal(self, size: Number) -> Value:
        """ceil(2**64 / size) as an i64; 0 for a size of 1, and for one of 0."""
        b = self.b
        divisor = b.signed_cast(maximum(size, 1), "i64")
        return wrap(b.constant(-1, "i64")) // divisor + 1

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
        if not isinstance(by, int) and (reciprocal := self._reciprocals.get(by)) is not None:
            return self._divide_by_reciprocal(number, by, reciprocal)
        if isinstance(number, int) or not self._is_short or by == 1:
            return number // by, number % by
        b, short = self.b, self.b.signed_cast(number, "i32")
        return b.index(short // by), b.index(short % by)

    def _divide_by_reciprocal(
        self, number: Number, by: Number, reciprocal: Value
    ) -> tuple[Number, Number]:
        b = self.b
        wide = b.signed_cast(number, "i64")
        _, high = ops.create("arith.mului_extended", [wide, reciprocal], [wide.type] * 2).results
        quotient = select(compare("eq", reciprocal, 0), wide, wrap(high))
        quotient = b.signed_cast(quotient, "index")
        return quotient, number - quotient * by

    @property
    def _is_short(self) -> bool:
        known = [mode.size for mode in self.modes if isinstance(mode.size, int)]
        return len(known) == len(self.modes) and prod(known) < _END_OF_SHORT


class Operand:
    """A, B or C as a buffer of one dimension, and the layouts of the problem's loops in it: those
    of the batch, of M, of N and of K. `for_gpu`: a GPU's kernel computes offsets; loops that are
    known to be contiguous have one mode, even if their sizes are unknown."""

    def __init__(
        self,
        b: Builder,
        problem: ImplicitGemm,
        arguments: Arguments,
        name: str,
        *,
        for_gpu: bool = False,
    ) -> None:
        number = "abc".index(name)
        memref, strides = arguments.values[number], problem.strides[number]
        begin, found = b.strides(memref)
        steps = [own if known is None else known for own, known in zip(found, strides, strict=True)]
        roles = (problem.batch, problem.rows, problem.columns, problem.k_loops)
        sizes = {
            loop: size_of(b, arguments, loop)
            for loop in (*problem.batch, *problem.rows, *problem.columns, *problem.k_loops)
        }

        has_merged = for_gpu and problem.padded_operand != name
        merged = _contiguous(memref, name, sizes) if has_merged else set()

        def layout(loops: Sequence[Loop]) -> Layout:
            modes: list[Mode] = []
            for place, loop in enumerate(loops):
                stride: Number = 0
                for dimension, factor in getattr(loop, name):
                    stride = stride + steps[dimension] * factor
                size = sizes[loop]
                if place > 0 and (loops[place - 1], loop) in merged:
                    size = modes.pop().size * size
                modes.append(Mode(size, stride))
            return Layout(b, _coalesced(modes), for_gpu=for_gpu)

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


def _contiguous(memref: Value, name: str, loops: Iterable[Loop]) -> set[tuple[Loop, Loop]]:
    """The pairs of loops that together go through two dimensions of an operand, the second one
    faster, whose elements are contiguous. The second one has as many iterations as its dimension
    has elements. (An image may be larger than what its windows cover, even those of one pixel.)"""
    type_ = ir.MemRefType(memref.type)
    if type_.layout != ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank)):
        return set()
    along: dict[int, list[Loop]] = {}
    for loop in loops:
        for dimension, _ in getattr(loop, name):
            along.setdefault(dimension, []).append(loop)
    whole = {
        dimension: loop
        for dimension, (loop, *others) in along.items()
        if not others
        and getattr(loop, name) == ((dimension, 1),)
        and (loop.source == (name, dimension) or loop.size == type_.shape[dimension])
    }
    return {
        (loop, whole[at + 1])
        for at, (loop, *others) in along.items()
        if not others and getattr(loop, name) == ((at, 1),) and at + 1 in whole
    }


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
