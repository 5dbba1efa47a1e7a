"""What the kernels of both layouts have in common: the type that they compute in.

Bytes are multiplied and added as f32, whose sums of so few products are exact: hardware has more
instructions for these, and fuses both. A zero point is subtracted from bytes where they are packed,
so that padding is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Value
from aotc.kernels.matmul.cpu.kernel import CpuKernel, computed_in
from aotc.kernels.matmul.depthwise.problem import Depthwise
from aotc.kernels.matmul.implicit_gemm.operand import Operand
from aotc.kernels.matmul.problem import EpilogueBuilder, Line
from aotc.mlir import ir

# No integer up to this one is rounded in f32.
_LARGEST_EXACT = 1 << 24
_LARGEST_PRODUCT = 255 * 128


class DepthwiseKernel(CpuKernel):
    """The base of the kernels. `of_a` and `of_b` are the input and the filter."""

    problem: Depthwise
    variant: Any
    of_a: Operand
    of_b: Operand

    def __init__(
        self, b: Builder, problem: Depthwise, variant: Any, epilogue: EpilogueBuilder | None
    ) -> None:
        super().__init__(b, problem, epilogue, computed="f32" if _is_exact(problem) else None)
        self.variant = variant
        self.short_type = self.of(self.type, variant.width)

    def load_input(self, at: Sequence[Number], width: int = 1, mask: Value | None = None) -> Value:
        """Elements of the input less the zero point; 0 where the mask has none."""
        return self._load(self.of_a.buffer, self.problem.zero, at, width, mask)

    def load_filter(self, at: Sequence[Number], width: int = 1, mask: Value | None = None) -> Value:
        """Elements of the filter; 0 where the mask has none."""
        return self._load(self.of_b.buffer, 0, at, width, mask)

    def _load(
        self, source: Buffer, zero: int, at: Sequence[Number], width: int, mask: Value | None
    ) -> Value:
        b, type_ = self.b, self.of(source.element, width)
        if mask is not None:
            outside = b.constant(zero, type_) if zero else b.zero(type_)
            operands = [source.value, *b.values((*source.leading, *at)), mask, outside]
            value = b.op("vector.maskedload", operands, type_)
        else:
            value = b.load(source, at) if width == 1 else b.load_vector(source, at, width)
        if not source.element.startswith("i"):
            return b.convert(value, self.of(self.type, width))
        wide = self.of("i32", width)
        value = b.convert(value, wide, unsigned=source.unsigned)
        if zero:
            value = b.subtract(value, b.constant(zero, wide))
        return b.op("arith.sitofp", [value], self.of("f32", width)) if self.is_exact else value

    @property
    def is_exact(self) -> bool:
        """Whether the kernel computes sums of integers in f32."""
        return self.type == "f32" and computed_in(self.problem) == "i32"

    def store_result(
        self,
        value: Value,
        c: Buffer,
        at: Sequence[Number],
        place: tuple[Number, Number],
        line: Line | None = None,
    ) -> None:
        """See `CpuKernel`."""
        if self.is_exact:
            width = value.type.shape[0] if isinstance(value.type, ir.VectorType) else 1
            value = self.b.op("arith.fptosi", [value], self.of("i32", width))
        super().store_result(value, c, at, place, line)


def _is_exact(problem: Depthwise) -> bool:
    """Whether all sums are of bytes, and exact in f32."""
    is_of_bytes = {problem.a.element, problem.b.element} == {"i8"} and not problem.b.unsigned
    is_small = problem.taps * _LARGEST_PRODUCT <= _LARGEST_EXACT
    return is_of_bytes and is_small and computed_in(problem) == "i32" and not problem.adds
