"""Gathered contractions for the CPU device: the blocks of `blocked`, packed from anywhere.

Where rows, columns and the depth lead to is computed once for a block, or a step along K, and
looked up while A and B are packed. Columns that follow each other in memory are vectors still.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from aotc.kernels.family import CPU
from aotc.kernels.indices import Index, IndexWriter
from aotc.kernels.matmul.cpu import blocked
from aotc.kernels.matmul.cpu.blocked import CPU_BLOCKED, Step, Tile, Variant
from aotc.kernels.matmul.cpu.writer import Buffer
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.implicit_gemm.problem import Digit, Gathered, Operand, count_of, offset
from aotc.kernels.matmul.problem import Finish, Problem

_WORKGROUP = "#gpu.address_space<workgroup>"
_ENTRY_BYTES = 8


class _Kernel(blocked.Kernel):
    def __init__(self, problem: Gathered, variant: Variant, finish: Finish | None) -> None:
        super().__init__(problem, variant, finish)
        self._emitter = self._writer = IndexWriter()
        self._gathered = problem

    def function(self, name: str) -> str:
        w, p = self._writer, self._gathered
        self._a, self._b, self._c = (Operand(w, p, letter) for letter in "abc")
        m, n, k, batches = (
            w.index(count_of(w, p, loops)) for loops in (p.rows, p.columns, p.depth, p.batch)
        )
        elements = self._op("muli", self._op("muli", m, n), batches)
        # A launch of no blocks is an error.
        w.open(f"scf.if {self._compare('ne', elements, self._number(0))} {{")
        self._launch(m, n, k, batches)
        w.close()
        w.line("return")
        return f"func.func @{name}({p.signature}) {{\n{w.text()}\n}}\n"

    # ---------------------------------------------------------------------------------------------
    # Tables

    @property
    def _table_lengths(self) -> dict[str, int]:
        """Of the rows of A and C, the columns of B and C, and the depth of both."""
        v = self._variant
        rows, columns, depth = v.tile_rows, v.tile_columns, v.depth
        names = ("rows_a", "rows_c", "columns_b", "columns_c", "depth_a", "depth_b")
        return dict(zip(names, (rows, rows, columns, columns, depth, depth), strict=True))

    def _shared_bytes(self, rows: str) -> str:
        tables = self._number(sum(self._table_lengths.values()) * _ENTRY_BYTES)
        return self._op("addi", super()._shared_bytes(rows), tables)

    def _prepare(self, tile: Tile, rows: str) -> None:
        w = self._writer
        start = super()._shared_bytes(rows)
        shared = w.value(f"gpu.dynamic_shared_memory : memref<?xi8, {_WORKGROUP}>")
        self._tables = {}
        for name, length in self._table_lengths.items():
            type_ = f"memref<{length}xi64, {_WORKGROUP}>"
            view = w.value(
                f"memref.view {shared}[{start}][] : memref<?xi8, {_WORKGROUP}> to {type_}"
            )
            self._tables[name] = Buffer(view, type_, "i64")
            start = self._op("addi", start, self._number(length * _ENTRY_BYTES))
        for name, operand in (("a", self._a), ("c", self._c)):
            base = offset(w, "%bz", operand.batch)
            self._fill(f"rows_{name}", tile.row, tile.rows, operand.rows, base)
        base = offset(w, "%bz", self._b.batch)
        self._fill("columns_b", tile.column, tile.columns, self._b.columns, base)
        self._fill("columns_c", tile.column, tile.columns, self._c.columns, 0)

    def _fill(
        self, name: str, first: str, count: str, digits: Sequence[Digit], base: Index
    ) -> None:
        """Where numbers from `first` on lead to."""
        w = self._writer
        with self._loop(self._number(0), count) as number:
            place = w.index(w.add(base, offset(w, w.add(first, number), digits)))
            entry = w.value(f"arith.index_cast {place} : index to i64")
            self._store(entry, self._tables[name], number)

    def _look_up(self, name: str, number: str) -> str:
        entry = self._load(self._tables[name], number)
        return self._writer.value(f"arith.index_cast {entry} : i64 to index")

    # ---------------------------------------------------------------------------------------------
    # Packing

    def _source(self, operand: Operand) -> Buffer:
        buffer = operand.buffer
        return Buffer(buffer.name, buffer.type, buffer.element)

    def _pack_a(self, tile: Tile, step: Step, packed: Buffer) -> None:
        """A's part, row by row; rows of the tile that are not there are zeros."""
        self._fill("depth_a", step.start, step.count, self._a.depth, 0)
        self._fill("depth_b", step.start, step.count, self._b.depth, 0)
        source = self._source(self._a)
        groups = self._groups(tile.rows, self._variant.rows)
        padded = self._op("muli", groups, self._number(self._variant.rows))
        with self._loop(self._number(0), tile.rows) as i:
            row = self._look_up("rows_a", i)
            if [digit.step for digit in self._a.depth] == [1]:
                first = self._op("addi", row, step.start)
                self._copy_run(step.count, (source, first), (packed, i))
            else:
                self._copy_gathered(step.count, (source, row), (packed, i))
        with (
            self._loop(tile.rows, padded) as i,
            self._loop(self._number(0), step.count) as k,
        ):
            self._store(self._zero(), packed, i, k)

    def _copy_gathered(
        self, count: str, source: tuple[Buffer, str], target: tuple[Buffer, str]
    ) -> None:
        (one, first), (other, row) = source, target
        with self._loop(self._number(0), count) as k:
            value = self._load(one, self._op("addi", first, self._look_up("depth_a", k)))
            self._store(self._convert(value, one.element), other, row, k)

    def _copy_run(self, count: str, source: tuple[Buffer, str], target: tuple[Buffer, str]) -> None:
        """Converts and copies neighbours: vectors of them, then those that are left."""
        width = self._columns
        (one, first), (other, row) = source, target
        rest = self._op("remsi", count, self._number(width))
        whole = self._op("subi", count, rest)
        with self._loop(self._number(0), whole, width) as k:
            vector = self._load_vector(one, self._op("addi", first, k))
            self._store_vector(self._convert(vector, one.element, width), other, row, k)
        with self._loop(whole, count) as k:
            value = self._load(one, self._op("addi", first, k))
            self._store(self._convert(value, one.element), other, row, k)

    def _pack_b(self, tile: Tile, step: Step, packed: Buffer) -> None:
        """B's part, in groups of columns; columns of the last one that are not there are zeros."""
        width = self._number(self._columns)
        groups = self._groups(tile.columns, self._columns)
        with (
            self._loop(self._number(0), step.count) as k,
            self._loop(self._number(0), groups) as group,
        ):
            depth = self._look_up("depth_b", k)
            first = self._op("muli", group, width)

            place = group, k, first, depth
            vector = partial(self._pack_vector, packed, *place)
            each = partial(self._pack_each, tile, packed, *place)
            self._where_run(tile, first, self._b.columns, vector, each)

    def _pack_vector(self, packed: Buffer, group: str, k: str, first: str, depth: str) -> None:
        source = self._source(self._b)
        at = self._op("addi", self._look_up("columns_b", first), depth)
        converted = self._convert(self._load_vector(source, at), source.element, self._columns)
        self._store_vector(converted, packed, group, k, self._number(0))

    def _pack_each(
        self, tile: Tile, packed: Buffer, group: str, k: str, first: str, depth: str
    ) -> None:
        source, width = self._source(self._b), self._number(self._columns)
        count = self._op("minsi", self._op("subi", tile.columns, first), width)
        with self._loop(self._number(0), count) as j:
            column = self._look_up("columns_b", self._op("addi", first, j))
            value = self._load(source, self._op("addi", column, depth))
            self._store(self._convert(value, source.element), packed, group, k, j)
        with self._loop(count, width) as j:
            self._store(self._zero(), packed, group, k, j)

    def _where_run(
        self,
        tile: Tile,
        first: str,
        digits: Sequence[Digit],
        then: Callable[[], None],
        otherwise: Callable[[], None],
    ) -> None:
        """`then` where a vector of columns from `first` on are neighbours in memory."""
        last = digits[-1]
        if last.step != 1:
            otherwise()
            return
        w = self._writer
        end = self._op("addi", first, self._number(self._columns))
        is_run = self._compare("sle", end, tile.columns)
        if len(digits) > 1:
            place = w.remainder(w.add(tile.column, first), last.size)
            end = self._op("addi", w.index(place), self._number(self._columns))
            is_one = self._compare("sle", end, w.index(last.size))
            is_run = w.value(f"arith.andi {is_run}, {is_one} : i1")
        w.open(f"scf.if {is_run} {{")
        then()
        w.otherwise()
        otherwise()
        w.close()

    # ---------------------------------------------------------------------------------------------
    # Writing C

    def _write(self, tile: Tile, sums: Buffer) -> None:
        """The rows and columns of the tile's sums that are C's."""
        width = self._number(self._columns)
        with self._loop(self._number(0), tile.rows) as i:
            base = self._look_up("rows_c", i)
            groups = self._groups(tile.columns, self._columns)
            with self._loop(self._number(0), groups) as group:
                first = self._op("muli", group, width)
                each = partial(self._write_each, tile, sums, i, base, first)
                if self._finish:
                    each()
                else:
                    vector = partial(self._write_vector, sums, i, base, first)
                    self._where_run(tile, first, self._c.columns, vector, each)

    def _write_vector(self, sums: Buffer, i: str, base: str, first: str) -> None:
        c = self._source(self._c)
        at = self._op("addi", base, self._look_up("columns_c", first))
        total = self._load_vector(sums, i, first)
        if self._problem.adds:
            before = self._convert(self._load_vector(c, at), c.element, self._columns)
            total = self._add(before, total, self._vector)
        self._store_vector(self._narrow(total, c.element, self._columns), c, at)

    def _write_each(self, tile: Tile, sums: Buffer, i: str, base: str, first: str) -> None:
        c = self._source(self._c)
        left = self._op("subi", tile.columns, first)
        count = self._op("minsi", left, self._number(self._columns))
        row = self._op("addi", tile.row, i)
        with self._loop(self._number(0), count) as number:
            j = self._op("addi", first, number)
            at = self._op("addi", base, self._look_up("columns_c", j))
            total = self._load(sums, i, j)
            if self._problem.adds:
                before = self._convert(self._load(c, at), c.element)
                total = self._add(before, total, self._type)
            column = self._op("addi", tile.column, j)
            self._store(self._finished(total, row, column), c, at)


class ImplicitCpu(MatmulFamily):
    """See the module's docstring."""

    name = "gathered blocks"
    target = CPU
    variant_type = Variant
    has_cost_model = False

    def can_take(self, problem: Problem, variant: Variant) -> bool:
        return isinstance(problem, Gathered) and CPU_BLOCKED.can_take(problem, variant)

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        return CPU_BLOCKED.variants(problem) if isinstance(problem, Gathered) else ()

    def function(
        self, problem: Problem, variant: Variant, name: str, finish: Finish | None = None
    ) -> str:
        assert isinstance(problem, Gathered)
        # A is packed row by row, B with its columns side by side, however they lie.
        packed = replace(
            problem,
            a=replace(problem.a, transposed=False),
            b=replace(problem.b, transposed=False),
            batched=False,
        )
        return _Kernel(packed, variant, finish).function(name)


IMPLICIT_CPU = ImplicitCpu()
