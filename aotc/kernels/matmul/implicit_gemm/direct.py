"""Direct multiply-adds for contractions of many batches with few columns: convolutions with groups
of few channels, whose channels are contiguous.

A thread computes all columns of some rows of a batch. The threads of a warp have neighbouring
batches, which are neighbouring groups of channels. An element of A is loaded once for all columns,
and one of B once for all rows of the thread. A tile of tensor cores would be nearly empty.
"""

from __future__ import annotations

from msgspec import Struct

from aotc.builder import Builder
from aotc.builder.numbers import Number, Value, compare, divide_up, minimum, unravel
from aotc.chips import H100
from aotc.kernels.family import ANY_GPU
from aotc.kernels.matmul.implicit_gemm.family import ImplicitGemmFamily
from aotc.kernels.matmul.implicit_gemm.operand import Operand, count_of
from aotc.kernels.matmul.implicit_gemm.output import OutputOfLoops
from aotc.kernels.matmul.implicit_gemm.problem import (
    ImplicitGemm,
    known_count,
    likely_count,
    step_of,
)
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments
from aotc.kernels.matmul.scalar import accumulator_type_of, has_known_types, launch

_THREADS = 128
_MOST_COLUMNS = 8
# Rows of a thread.
_ROWS = 16
# A warp has this number of neighbouring groups, at least.
_LEAST_BATCHES = 8
_LEAST_COPY_BYTES = 8
# A thread adds all products of a sum one after the other.
_MOST_K = 512
# If there were fewer threads than this, two warps of a scheduler, those of few columns have
# fewer rows. With more columns, tensor cores are faster then.
_FEW_COLUMNS = 4
_ENOUGH_THREADS = 1 << 15
# Multiply-adds of f32 in a clock of a multiprocessor.
_MULTIPLY_ADDS = 128


class Variant(Struct, frozen=True):
    """Parameters of a kernel: the rows of a thread, its columns, and the elements along K that it
    loads at once."""

    m: int
    n: int
    k: int


class _Kernel:
    """The kernel for one problem; `build` inserts it."""

    def __init__(
        self, b: Builder, problem: ImplicitGemm, variant: Variant, arguments: Arguments
    ) -> None:
        self.b, self.problem, self.variant, self.arguments = b, problem, variant, arguments
        self.type = accumulator_type_of(problem)
        self.of_a, self.of_b, self.of_c = (Operand(b, problem, arguments, one) for one in "abc")

    def build(self) -> None:
        b, p = self.b, self.problem
        rows, batches = (count_of(b, self.arguments, loops) for loops in (p.rows, p.batch))
        strips = divide_up(rows, self.variant.m)
        threads = strips * batches
        with launch(b, divide_up(threads, _THREADS), _THREADS) as block:
            number = block.index * _THREADS + block.thread
            with b.where(compare("ult", number, threads)):
                strip, batch = unravel(number, batches)
                self._strip(batch, strip * self.variant.m, rows)

    def _strip(self, batch: Number, first: Number, extent: Number) -> None:
        """Computes all columns of the rows from `first` on. Rows past the last one repeat it, and
        are not stored."""
        b, m, n = self.b, self.variant.m, self.variant.n
        is_whole = isinstance(extent, int) and extent % m == 0
        rows = [first + i for i in range(m)]
        own = rows if is_whole else [minimum(row, extent - 1) for row in rows]
        sums = self._sums(batch, own)
        output = OutputOfLoops(b, self.problem, self.of_c, batch, self.arguments.epilogue)
        size = ELEMENT_BYTES[self.problem.c.element]
        width = n if self.problem.c.alignment % (n * size) == 0 else 1
        for i, row in enumerate(rows):
            with b.where(is_whole or compare("ult", row, extent)):
                for column in range(0, n, width):
                    at = i * n + column
                    output.store(sums[at : at + width], row, column)

    def _sums(self, batch: Number, rows: list[Number]) -> list[Value]:
        b, variant = self.b, self.variant
        of_a, of_b = self.of_a, self.of_b
        starts = [of_a.batch.offset(batch) + of_a.m.offset(row) for row in rows]
        columns = [of_b.batch.offset(batch) + of_b.n.offset(j) for j in range(variant.n)]
        zeros = [b.zero(self.type)] * (variant.m * variant.n)

        def load(operand: Operand, start: Number, k: Number) -> list[Value]:
            values = b.load_elements(operand.buffer, [start + k], variant.k)
            return [b.convert(value, self.type) for value in values]

        with b.loop(0, self.problem.k or 0, variant.k, zeros) as loop:
            along_a, along_b = (one.k.offset(loop.index) for one in (of_a, of_b))
            filters = [load(of_b, start, along_b) for start in columns]
            sums = loop.carried
            for i, start in enumerate(starts):
                inputs = load(of_a, start, along_a)
                for j, filter_ in enumerate(filters):
                    at = i * variant.n + j
                    for one, other in zip(inputs, filter_, strict=True):
                        sums[at] = b.multiply_add(one, other, sums[at])
            loop.next(sums)
        return loop.results


class ImplicitDirect(ImplicitGemmFamily):
    """See the module's docstring."""

    name = "direct multiply-adds"
    mnemonic = "direct"
    target = ANY_GPU
    variant_type = Variant
    kernel_type = _Kernel

    def can_implement(self, problem: ImplicitGemm, variant: Variant) -> bool:
        return (
            has_known_types(problem)
            and problem.a.element == problem.b.element
            and problem.a.element in ("f16", "bf16")
            and accumulator_type_of(problem) == "f32"
            and 0 < (problem.k or 0) <= _MOST_K
            and not problem.a.transposed
            and problem.b.transposed
            and variant.n == known_count(problem.columns)
            and variant.k == self._together(problem)
        )

    def variants(self, problem: ImplicitGemm) -> tuple[Variant, ...]:
        columns = known_count(problem.columns) or 0
        if not 1 < columns <= _MOST_COLUMNS or likely_count(problem.batch) < _LEAST_BATCHES:
            return ()
        width = self._together(problem)
        if width * ELEMENT_BYTES[problem.a.element] < _LEAST_COPY_BYTES:
            return ()
        if not _has_neighbours(problem):
            return ()
        rows, count = _ROWS, likely_count(problem.rows) * likely_count(problem.batch)
        while rows > 1 and count < rows * _ENOUGH_THREADS:
            rows //= 2
        if rows < _ROWS and columns > _FEW_COLUMNS:
            return ()
        variant = Variant(rows, columns, width)
        return (variant,) if self.can_implement(problem, variant) else ()

    def clocks_on_h100(self, problem: ImplicitGemm, variant: Variant) -> float:
        loops = (*problem.rows, *problem.columns, *problem.k_loops, *problem.batch)
        return likely_count(loops) / H100.multiprocessors / _MULTIPLY_ADDS

    def tile_name(self, problem: ImplicitGemm, variant: Variant) -> str:
        return f"{variant.m}x{variant.n}x{variant.k}"

    @staticmethod
    def _together(problem: ImplicitGemm) -> int:
        """The elements along K that one access of A, and one of B, has."""
        aligned = min(problem.a.alignment, problem.b.alignment)
        return max(1, aligned // ELEMENT_BYTES[problem.a.element])


def _has_neighbours(problem: ImplicitGemm) -> bool:
    """Whether the elements of A that neighbouring batches multiply follow each other."""

    inner = problem.k_loops[-1]
    strides, outer = problem.strides[0], problem.batch[-1]
    return step_of(strides, inner.a) == 1 and step_of(strides, outer.a) == inner.size


IMPLICIT_DIRECT = ImplicitDirect()
