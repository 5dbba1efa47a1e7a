"""GEMV for the CPU device with a constant matrix, which the runtime packs once to panels of columns
of the width of a cache line (see `aotc_constant_get_packed`). The rest is `cpu.streamed`.

A panel is contiguous in memory, so a thread reads its columns as one stream, and uses all of every
page. (In an unpacked matrix, the parts of rows in a strip of columns may be a page apart: the
bandwidth is then two thirds of that of a copy.) The accumulators of a panel are in registers.
"""

from __future__ import annotations

from msgspec.structs import replace

from aotc.builder import Builder
from aotc.builder.numbers import Number, Value
from aotc.kernels.cpu.vectors import VECTOR_BYTES
from aotc.kernels.matmul.cpu import streamed
from aotc.kernels.matmul.cpu.kernel import computed_in
from aotc.kernels.matmul.cpu.packed import packed_type
from aotc.kernels.matmul.cpu.streamed import CpuStreamed, Variant
from aotc.kernels.matmul.problem import ELEMENT_BYTES, EpilogueBuilder, Problem

# The number of vectors of accumulators, used in turn to hide the latency of additions.
_ACCUMULATORS = 4
# The least that a block reads: less takes no longer than waking up a thread.
_BLOCK_BYTES = 128 << 10
_COLUMNS_AT_MOST, _BLOCKS = 1024, 64


def packed_row_problem(problem: Problem) -> Problem | None:
    """The problem of one row with a packed B; None if nothing is gained."""
    type_ = packed_type(problem.b)
    if problem.batched or problem.m != 1 or type_ is None:
        return None
    return replace(problem, b=replace(problem.b, type=type_))


class Kernel(streamed.Kernel):
    def __init__(
        self, b: Builder, problem: Problem, variant: Variant, epilogue: EpilogueBuilder | None
    ) -> None:
        super().__init__(b, problem, variant, epilogue)
        self.group_columns = VECTOR_BYTES // ELEMENT_BYTES[problem.b.element]

    def accumulate(self, begin: Number, count: Number, k: Number) -> None:
        """See the base class. Columns past the last one are computed from the panel's zeros."""
        b = self.b
        first = self.signed("divsi", begin, self.group_columns)
        with b.loop(0, self.groups(count, self.group_columns)) as panel:
            sums = self._add_panel(first + panel.index, k)
            for number, vector in enumerate(sums):
                at = panel.index * self.group_columns + number * self.width
                self.store(vector, self.accumulators, [at])

    def _add_panel(self, panel: Number, k: Number) -> list[Value]:
        """The accumulators of a panel's columns. Consecutive k have separate accumulators, as an
        addition waits for the previous one."""
        b, rows = self.b, self.variant.rows
        vectors = self.group_columns // self.width
        whole = self.whole(k, rows)
        with b.loop(0, whole, rows, [b.zero(self.vector_type)] * (rows * vectors)) as loop:
            added: list[Value] = []
            for i in range(rows):
                carried = loop.carried[i * vectors : (i + 1) * vectors]
                added += self._add_row(panel, loop.index + i, carried)
            loop.next(added)
        first, *others = (loop.results[i * vectors : (i + 1) * vectors] for i in range(rows))
        for other in others:
            first = [b.add(*pair) for pair in zip(first, other, strict=True)]
        with b.loop(whole, k, 1, first) as loop:
            loop.next(self._add_row(panel, loop.index, loop.carried))
        return list(loop.results)

    def _add_row(self, panel: Number, k: Number, carried: list[Value]) -> list[Value]:
        factor = self.broadcast(self.load(self.row, [0, k]))
        loaded = [
            self.load(self.matrix_b, [panel, k, number * self.width], self.width)
            for number in range(len(carried))
        ]
        products = [self.b.multiply(factor, one) for one in loaded]
        return [self.b.add(*pair) for pair in zip(carried, products, strict=True)]


class CpuStreamedPacked(CpuStreamed):
    """See the module's docstring. The type of B in the problem is that of the packed copy."""

    name = "one pass over a packed constant"
    mnemonic = "cpu_packed_gemv"
    kernel_type = Kernel

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        element_bytes = ELEMENT_BYTES[problem.b.element]
        columns = VECTOR_BYTES // element_bytes
        k, _ = problem.b.sizes
        enough = _BLOCK_BYTES // ((k or 1) * element_bytes)
        least = min(max(-(-enough // columns), 1) * columns, _COLUMNS_AT_MOST)
        vectors = columns * ELEMENT_BYTES[computed_in(problem)] // VECTOR_BYTES
        rows = max(_ACCUMULATORS // vectors, 1)
        return (Variant(rows, least, _COLUMNS_AT_MOST, _BLOCKS),)


CPU_STREAMED_PACKED: CpuStreamed = CpuStreamedPacked()
