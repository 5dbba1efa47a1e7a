"""Stores to a C of any rank, by the layouts of its loops."""

from __future__ import annotations

from collections.abc import Sequence

from aotc.builder import Builder
from aotc.builder.numbers import Number, Value
from aotc.kernels.matmul.implicit_gemm.operand import Operand
from aotc.kernels.matmul.mma_sync.store import add_to_old, elements_of_c, store_vector
from aotc.kernels.matmul.problem import EpilogueBuilder, Place, Problem


class OutputOfLoops:
    """Stores to one matrix of a batch."""

    has_padded_rows = False

    def __init__(
        self,
        b: Builder,
        problem: Problem,
        c: Operand,
        batch: Number,
        epilogue: EpilogueBuilder | None,
    ) -> None:
        self.b, self.problem, self.c = b, problem, c
        self.batch, self.epilogue = batch, epilogue

    def store(self, accumulators: Sequence[Value], row: Number, column: Number) -> None:
        b, c = self.b, self.c
        at = c.batch.offset(self.batch) + c.m.offset(row)
        at = at + c.n.offset(column)
        if self.problem.adds:
            accumulators = add_to_old(b, self.problem, accumulators, c.buffer, [at])
        columns = b.values([column + number for number in range(len(accumulators))])
        place = Place(b.value(self.batch), b.value(row), columns)
        values = elements_of_c(b, self.problem, accumulators, place, self.epilogue)
        store_vector(b, values, c.buffer, [at])
