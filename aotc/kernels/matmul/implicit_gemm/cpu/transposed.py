"""Implicit GEMM for the CPU device whose filters are a constant with channels last, of f16: the
runtime transposes them once (see `matmul.cpu.packed`). The rest is `gathered`."""

from __future__ import annotations

from msgspec.structs import replace

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Value
from aotc.kernels.cpu.constant_copies import copy_of_constant
from aotc.kernels.matmul.cpu.kernel import computed_in
from aotc.kernels.matmul.cpu.packed import TransposedKernel, transposed_type
from aotc.kernels.matmul.implicit_gemm.cpu import gathered
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, known_count, loop_step
from aotc.kernels.matmul.problem import Arguments
from aotc.module_names import TRANSPOSED_COPY


def transposed_filters(b: Builder, problem: ImplicitGemm, arguments: Arguments) -> Value | None:
    """The transposed copy of the filters; None if they are no constant, or nothing is gained."""
    if any(loop.b for loop in problem.batch):
        return None  # each group of a convolution has its own filters
    run: int | None = 1
    for loop in reversed((*problem.columns, *problem.k_loops)):
        if run is None or loop_step(problem, loop, "b") != run:
            return None
        run = None if loop.size is None else run * loop.size
    sizes = known_count(problem.columns), known_count(problem.k_loops)
    matrix = replace(problem.b, sizes=sizes, pitch=None)
    type_ = transposed_type(matrix, computed_in(problem))
    return None if type_ is None else copy_of_constant(b, arguments.b, TRANSPOSED_COPY, type_)


class Kernel(TransposedKernel, gathered.Kernel):
    """See the module's docstring."""

    def build_transposed(self, filters: Value, arguments: Arguments) -> None:
        self.filters = Buffer(filters)
        self.build(arguments)

    @property
    def transposed_b(self) -> Buffer:
        return self.filters
