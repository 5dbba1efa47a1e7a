"""GEMV for the CPU device: a row times a matrix. It is memory-bound, so nothing is packed.

A matrix times a column is computed as the transpose of C: a row times the transpose of A.

If K is contiguous in B, a thread multiplies several rows of B with A's row at once, a vector of
each at a time, and reduces the vectors of accumulators at the end. Otherwise the accumulators of a
strip of columns stay in the thread's cache, and several rows of B are added to them at once.

Multiplications and additions may be contracted: hardware with fused multiply-add uses it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import Builder
from aotc.builder.numbers import Number, Value, compare, signed_maximum, signed_minimum
from aotc.kernels.cpu.vectors import VECTOR_BYTES
from aotc.kernels.matmul.cpu.kernel import CpuFamily, CpuKernel, computed_in, has_convertible_types
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, EpilogueBuilder, Matrix, Problem
from aotc.mlir import ir


class Variant(Struct, frozen=True):
    """Parameters of a kernel. `rows` rows of B are read at once. A block computes between `least`
    and `most` elements of C, as many as give `blocks` blocks. (A strip of columns touches a page in
    each row of B, so few wide strips are faster than one for each of many cores.)"""

    rows: int
    least: int
    most: int
    blocks: int


def _of_row(problem: Problem) -> Problem | None:
    """The problem with one row, whose vectors are views; None if C has neither one row nor one
    column, or if the elements of a vector are not contiguous."""
    if problem.m == 1:
        a = _as_row(problem.a, problem.batched)
        return None if a is None else replace(problem, a=a)
    a, c = (_as_row(matrix, problem.batched) for matrix in (problem.b, problem.c))
    if problem.n != 1 or a is None or c is None:
        return None
    b = replace(problem.a, transposed=not problem.a.transposed)
    return replace(problem, a=a, b=b, c=c)


def _as_row(matrix: Matrix, batched: bool) -> Matrix | None:
    """A matrix of one row or column as one row; None if its elements are not contiguous."""
    rows, columns = matrix.sizes
    if rows == 1:
        return replace(matrix, transposed=False)
    if columns != 1 or matrix.pitch != 1:
        return None
    sizes, strides = ("?x1x?", "?, 1, 1") if batched else ("1x?", "1, 1")
    type_ = f"memref<{sizes}x{matrix.element}, strided<[{strides}], offset: ?>>"
    return replace(matrix, type=type_, sizes=(1, rows), transposed=False)


class Kernel(CpuKernel):
    """The kernel for one problem, converted by `_of_row`. `build` inserts it."""

    def __init__(
        self, b: Builder, problem: Problem, variant: Variant, epilogue: EpilogueBuilder | None
    ) -> None:
        of_row = _of_row(problem)
        assert of_row is not None
        super().__init__(b, of_row, epilogue)
        self.variant, self.is_column = variant, problem.m != 1
        # A block's columns are a multiple of this.
        self.group_columns = self.width

    # --- Host code -----------------------------------------------------------------------------

    def build(self, arguments: Arguments) -> None:
        b, v, p = self.b, self.variant, self.problem
        given = [arguments.a, arguments.b, arguments.c]
        if self.is_column:
            given[:2] = given[1::-1]
        views = [self._view(*one) for one in zip(given, (p.a, p.b, p.c), strict=True)]
        n, k = (b.dim(views[number], 1 + int(p.batched)) for number in (2, 0))
        batches = b.dim(views[2], 0) if p.batched else 1
        # A launch of no blocks is an error.
        with b.where(compare("ne", n * batches, 0)):
            group = v.rows if p.b.transposed else self.group_columns
            each: Number = self.groups(self.groups(n, v.blocks), group) * group
            each = signed_maximum(signed_minimum(each, v.most), v.least)
            shared_bytes = 0 if p.b.transposed else v.most * self.bytes
            with b.launch([self.groups(n, each), 1, batches], 1, shared_bytes) as launch:
                x, _, self.batch = launch.block_ids
                self.row = self.matrix(views[0], unsigned=p.a.unsigned)
                self.matrix_b = self.matrix(views[1], unsigned=p.b.unsigned)
                self.c = self.matrix(views[2])
                begin = x * each
                compute = self._dot_products if p.b.transposed else self._add_strips
                compute(begin, signed_minimum(each, n - begin), k)

    def _view(self, value: Value, matrix: Matrix) -> Value:
        """An argument as the kernel's matrix: itself, or a view of a column as a row."""
        b, batch = self.b, int(self.problem.batched)
        # The offset may be another one: calls of one launch function have several.
        if ir.MemRefType(value.type).shape == ir.MemRefType(b.type(matrix.type)).shape:
            return value
        _, offset, sizes, strides = b.metadata(value)
        sizes_of_row: list[Number] = [*sizes[:batch], 1, sizes[batch]]
        strides_of_row: list[Number] = [*strides[:batch], 1, 1]
        return b.reinterpret_cast(value, offset, sizes_of_row, strides_of_row, matrix.type)

    def _store_result(self, value: Value, column: Number) -> None:
        place = (column, 0) if self.is_column else (0, column)
        self.store_result(value, self.c, [0, column], place)

    # --- K contiguous in B ---------------------------------------------------------------------

    def _dot_products(self, begin: Number, count: Number, k: Number) -> None:
        """Computes `count` elements of C, each the dot product of A's row and a row of B."""
        b, v = self.b, self.variant
        end = begin + count
        middle = begin + self.whole(count, v.rows)
        for start, stop, rows in ((begin, middle, v.rows), (middle, end, 1)):
            with b.loop(start, stop, rows) as loop:
                columns = [loop.index + i for i in range(rows)]
                vectors, elements = self.vectorized(k)
                accumulators = [b.zero(self.vector_type)] * rows
                accumulators = [
                    b.op("vector.reduction", [vector], self.type, kind="#vector.kind<add>")
                    for vector in self._multiply_rows(columns, vectors, accumulators)
                ]
                accumulators = self._multiply_rows(columns, elements, accumulators)
                for value, column in zip(accumulators, columns, strict=True):
                    self._store_result(value, column)

    def _multiply_rows(
        self,
        rows: Sequence[Number],
        part: tuple[Number, Number, int],
        accumulators: Sequence[Value],
    ) -> list[Value]:
        """The accumulators plus the products of rows of B and A's row. `part` is a range of K, as
        the bounds and the step of a loop."""
        b, width = self.b, part[-1]
        with b.loop(*part, accumulators) as loop:
            factor = self.load(self.row, [0, loop.index], width)
            loaded = [self.load(self.matrix_b, [row, loop.index], width) for row in rows]
            products = [b.multiply(factor, one) for one in loaded]
            loop.next([b.add(*pair) for pair in zip(loop.carried, products, strict=True)])
        return loop.results

    # --- N contiguous in B ---------------------------------------------------------------------

    def _add_strips(self, begin: Number, count: Number, k: Number) -> None:
        """Computes `count` elements of C, whose accumulators are in shared memory."""
        b, v = self.b, self.variant
        self.accumulators = b.shared_buffer(b.shared_memory(), 0, [v.most], self.type)
        self.accumulate(begin, count, k)
        for j, width in self.each_stored(0, count, 1 if self.is_column else self.width):
            value = self.load(self.accumulators, [j], width)
            self._store_result(value, begin + j)

    def accumulate(self, begin: Number, count: Number, k: Number) -> None:
        """Computes the accumulators of `count` columns from `begin` on."""
        b, v = self.b, self.variant
        for start, stop, width in self.vectorized(count):
            with b.loop(start, stop, width) as j:
                zero = b.zero(self.of(self.type, width))
                self.store(zero, self.accumulators, [j.index])
        whole = self.whole(k, v.rows)
        for start, stop, rows in ((0, whole, v.rows), (whole, k, 1)):
            with b.loop(start, stop, rows) as loop:
                self._add_rows([loop.index + i for i in range(rows)], begin, count)

    def _add_rows(self, rows: Sequence[Number], begin: Number, count: Number) -> None:
        """Adds `count` columns of `rows` of B, from `begin` on, times A's elements."""
        b = self.b
        elements = [self.load(self.row, [0, row]) for row in rows]
        vectors = [self.broadcast(element) for element in elements]
        for start, stop, width in self.vectorized(count):
            with b.loop(start, stop, width) as j:
                column = begin + j.index
                value = self.load(self.accumulators, [j.index], width)
                for factor, row in zip(elements if width == 1 else vectors, rows, strict=True):
                    loaded = self.load(self.matrix_b, [row, column], width)
                    value = b.add(value, b.multiply(factor, loaded))
                self.store(value, self.accumulators, [j.index])


class CpuStreamed(CpuFamily[Problem]):
    """See the module's docstring."""

    name = "one pass over the matrix"
    mnemonic = "cpu_gemv"
    variant_type = Variant
    is_bandwidth_bound = True
    kernel_type = Kernel

    def can_implement(self, problem: Problem, variant: Variant) -> bool:
        of_row = _of_row(problem)
        if of_row is None:
            return False
        columns = VECTOR_BYTES // ELEMENT_BYTES[computed_in(problem)]
        group = variant.rows if of_row.b.transposed else columns
        return (
            has_convertible_types(problem)
            and variant.least % group == 0
            and variant.most % group == 0
        )

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        of_row = _of_row(problem)
        if of_row is None:
            return ()
        found = Variant(4, 4, 64, 64) if of_row.b.transposed else Variant(8, 256, 1024, 4)
        return (found,) if self.can_implement(problem, found) else ()

    def tile_name(self, problem: Problem, variant: Variant) -> str:
        return f"{variant.rows}x{variant.most}"


CPU_STREAMED: CpuStreamed = CpuStreamed()
