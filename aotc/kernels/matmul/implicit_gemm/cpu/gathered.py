"""Implicit GEMM for the CPU device: the blocks of `matmul.cpu.blocked`, packed from any layout.

The offsets of rows, of columns and of k are computed once for a block, or for a step along K, and
are looked up in tables while A and B are packed. Offsets with a constant stride need no table. A is
not packed if its rows are contiguous along K, as the weights of a convolution are. Columns that are
contiguous in memory are read and written as vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from msgspec import Struct

from aotc.builder import Buffer
from aotc.builder.numbers import (
    Condition,
    Number,
    Scalar,
    Value,
    compare,
    signed_maximum,
    signed_minimum,
)
from aotc.kernels.cpu.levels import AVX512, has_level
from aotc.kernels.cpu.mainloop import Row
from aotc.kernels.cpu.packing import Column, pack_along_k
from aotc.kernels.cpu.vectors import PACKED_STRIDES, VECTOR_STRIDES
from aotc.kernels.matmul.cpu import blocked
from aotc.kernels.matmul.cpu.blocked import Step, Tile
from aotc.kernels.matmul.implicit_gemm.operand import Layout, Operand, count_of
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm
from aotc.kernels.matmul.problem import Arguments, Line

_ENTRY_BYTES = 8
# The lengths of runs of columns that are packed as short vectors. They divide the vector width, and
# thus the number of a tile's columns.
_SHORT_RUNS = (2, 4, 8)
# The tables. The first letter is the dimension (rows, columns or K), the last one the operand.
_TABLES = ("m_a", "m_c", "n_b", "n_c", "k_a", "k_b")


class _Run(Struct, frozen=True):
    """Offsets without a table: those of the indices from `first` on in `layout`, plus `base`."""

    layout: Layout
    first: Number
    base: Number


class _Neighbours(Struct, frozen=True):
    """A run of rows, of columns or of k, from `begin` to `end`, with a constant `stride` in memory.
    The offset of an element is the sum of those in the tables `name` and `other`."""

    name: str
    other: str
    begin: Number
    end: Number
    stride: int


class Kernel(blocked.Kernel):
    """The kernel that packs by tables. The matrices of `problem` are marked as not transposed,
    whatever their layout, as A is packed row by row, and B with adjacent columns."""

    problem: ImplicitGemm

    def build(self, arguments: Arguments) -> None:
        b, p = self.b, self.problem
        self.find_operands(arguments)
        m, n, k, batches = (
            count_of(b, arguments, loops) for loops in (p.rows, p.columns, p.k_loops, p.batch)
        )
        self.launch(m, n, k, batches)

    def find_operands(self, arguments: Arguments) -> None:
        b, p = self.b, self.problem
        self.of_a, self.of_b, self.of_c = (Operand(b, p, arguments, letter) for letter in "abc")
        self.runs: dict[str, _Run] = {}

    @property
    def batch_of_c(self) -> Value | None:
        """See the base class."""
        return self.b.value(self.batch) if self.problem.batch else None

    @property
    def reads_a(self) -> bool:
        """Whether the mainloop reads A in place."""
        a = self.of_a
        return [mode.stride for mode in a.k.modes] == [1] and a.buffer.element == self.type

    @property
    def reads_b(self) -> bool:
        return False

    @property
    def has_rows_along_k(self) -> bool:
        """See the base class. Otherwise the packed A is contiguous along M, as in memory, where
        adjacent rows are adjacent elements: for example, the pixels of an image whose channels are
        not last."""
        rows, k = self.of_a.m.modes[-1:], self.of_a.k.modes[-1:]
        if self.reads_a or not rows or not k or rows[0].stride not in VECTOR_STRIDES:
            return True
        sizes = [one.size if isinstance(one.size, int) else self.width for one in (*rows, *k)]
        return sizes[0] < self.width or (k[0].stride == 1 and sizes[1] >= self.width)

    @property
    def has_columns_along_k(self) -> bool:
        """Whether each column of B is contiguous in memory, as a filter with channels last, and
        vectors of columns are not."""
        n = self.of_b.n.modes[-1:]
        has_vectors = bool(n) and n[0].stride in VECTOR_STRIDES
        return not has_vectors and [mode.stride for mode in self.of_b.k.modes] == [1]

    @property
    def packed_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """See the base class. Packed rows along M or N have a vector of padding, as the last run of
        a row may end there, and so that rows begin in different sets of a cache."""
        v = self.variant
        a, b = super().packed_shapes
        if not self.has_rows_along_k:
            a = (v.tile_k, v.tile_rows + 2 * self.width)
        if not self.has_columns_along_k:
            b = (v.tile_k, v.tile_columns + 2 * self.width)
        return a, b

    # --- Tables --------------------------------------------------------------------------------

    @property
    def table_lengths(self) -> dict[str, int]:
        """The lengths of the tables: offsets of rows in A and C, of columns in B and C, and of k in
        A and B."""
        v = self.variant
        lengths = {"m": v.tile_rows, "n": v.tile_columns + self.width, "k": v.tile_k}
        return {name: lengths[name[0]] for name in _TABLES if len(self.layout_of(name).modes) > 1}

    def layout_of(self, name: str) -> Layout:
        """The layout whose offsets a table has."""
        operand = {"a": self.of_a, "b": self.of_b, "c": self.of_c}[name[-1]]
        return {"m": operand.m, "n": operand.n, "k": operand.k}[name[0]]

    def shared_bytes(self, rows: Number) -> Number:
        """See the base class. The tables are behind the accumulators."""
        return super().shared_bytes(rows) + sum(self.table_lengths.values()) * _ENTRY_BYTES

    def prepare(self, tile: Tile, rows: Number) -> None:
        """Creates the tables, and fills those of rows and columns."""
        b, start = self.b, super().shared_bytes(rows)
        memory = b.shared_memory()
        self.tables = {}
        for name, length in self.table_lengths.items():
            self.tables[name] = b.shared_buffer(memory, start, [length], "i64")
            start = start + length * _ENTRY_BYTES
        for name, operand in (("m_a", self.of_a), ("m_c", self.of_c)):
            base = operand.batch.offset(self.batch)
            self.fill(name, tile.row, tile.rows, base)
        self.fill_columns(tile)

    def fill_columns(self, tile: Tile) -> None:
        base = self.of_b.batch.offset(self.batch)
        self.fill("n_b", tile.column, tile.columns, base)
        self.fill("n_c", tile.column, tile.columns)

    def fill(self, name: str, first: Number, count: Number, base: Number = 0) -> None:
        """Stores the offsets of `count` indices, from `first` on, to a table."""
        b, layout = self.b, self.layout_of(name)
        if name not in self.tables:
            self.runs[name] = _Run(layout, first, base)
            return
        with b.loop(0, count) as loop:
            offset = base + layout.offset(first + loop.index)
            b.store(b.signed_cast(offset, "i64"), self.tables[name], [loop.index])

    def offset(self, name: str, number: Number) -> Number:
        """The offset of an index, relative to the first one in the table."""
        if name in self.runs:
            run = self.runs[name]
            return run.base + run.layout.offset(run.first + number)
        return self.b.signed_cast(self.b.load(self.tables[name], [number]), "index")

    # --- Packing -------------------------------------------------------------------------------

    def start_step(self, step: Step) -> None:
        self.fill("k_b", step.start, step.count)

    def pack_a(self, tile: Tile, step: Step) -> None:
        """Packs A's part, row by row."""
        b, a = self.b, self.of_a
        self.fill("k_a", step.start, step.count)
        if not self.has_rows_along_k:
            last = a.m.modes[-1]
            with self.runs_of(last.size, tile.row, tile.rows) as (begin, end):
                run = _Neighbours("m_a", "k_a", begin, end, last.stride)
                self._pack_vectors(a.buffer, run, step.count, self.packed_a)
            return
        last = a.k.modes[-1]
        if last.stride == 1:
            with self.runs_of(last.size, step.start, step.count) as (begin, end):
                run = _Neighbours("k_a", "m_a", begin, end, 1)
                self._pack_vectors(a.buffer, run, tile.rows, self.packed_a)
            return
        with b.loop(0, tile.rows) as row:
            first = self.offset("m_a", row.index)
            with b.loop(0, step.count) as k:
                value = self.load(a.buffer, [first + self.offset("k_a", k.index)])
                b.store(value, self.packed_a, [row.index, k.index])

    @contextmanager
    def runs_of(
        self, size: Number, start: Number, count: Number
    ) -> Iterator[tuple[Number, Number]]:
        """A loop over the parts into which the multiples of `size` divide `count` indices from
        `start` on. Yields the bounds of a part, relative to `start`."""
        skipped = start % size
        with self.b.loop(0, self.groups(count + skipped, size)) as run:
            begin = signed_maximum(run.index * size - skipped, 0)
            end = signed_minimum((run.index + 1) * size - skipped, count)
            yield begin, end

    def pack_b(self, tile: Tile, step: Step, start: Number) -> None:
        """Packs B's part, row by row, in runs of columns with a constant stride in memory. The
        contents past the tile's last column are unspecified."""
        last = self.of_b.n.modes[-1]
        if self.has_columns_along_k:

            def column_of(column: Number) -> Column:
                first = self.place_in_b(tile, column, 0)
                return lambda k, width=1: self.load(self.of_b.buffer, [first + k], width)

            pack_along_k(self, column_of, (step.count, tile.columns), self.packed_b)
        elif last.size in _SHORT_RUNS and last.stride in VECTOR_STRIDES:
            self._pack_short_runs(tile, step, last.size, last.stride)
        else:
            self.pack_runs(tile, step)

    def pack_runs(self, tile: Tile, step: Step) -> None:
        """Packs runs of any length. A tile may have parts of runs."""
        last = self.of_b.n.modes[-1]
        with self.runs_of(last.size, tile.column, tile.columns) as (begin, end):
            self.pack_run(step, begin, end, last.stride)

    def _pack_short_runs(self, tile: Tile, step: Step, size: int, stride: int) -> None:
        """Packs runs of `size` columns, which are whole in a tile. The outer loop is along K, so
        that a packed row is written from its first column to its last one."""
        b, source = self.b, self.of_b.buffer
        with b.loop(0, step.count) as k:
            of_k = self.offset("k_b", k.index)
            with b.loop(0, tile.columns, size) as column:
                at = self.offset("n_b", column.index) + of_k
                vector = self.load_strided(source, at, stride, width=size)
                self.store(vector, self.packed_b, [k.index, column.index])

    def pack_run(self, step: Step, begin: Number, end: Number, stride: int | Number) -> None:
        """Packs a run of columns with a constant stride in memory."""

        def pack_vectors(stride: int) -> None:
            run = _Neighbours("n_b", "k_b", begin, end, stride)
            self._pack_vectors(self.of_b.buffer, run, step.count, self.packed_b)

        self.for_stride(stride, pack_vectors, lambda: self._pack_run(step, begin, end, stride))

    def for_stride(
        self,
        stride: int | Number,
        with_vectors: Callable[[int], None],
        with_elements: Callable[[], None],
    ) -> None:
        """Executes `with_vectors` if the processor loads vectors with this stride faster than their
        elements. With more than two loads, this takes shuffles of AVX-512."""
        if not isinstance(stride, int) or stride not in PACKED_STRIDES:
            with_elements()
        elif stride in VECTOR_STRIDES:
            with_vectors(stride)
        else:
            with self.b.where(has_level(self.b, AVX512)) as branch:
                with_vectors(stride)
            with branch.otherwise():
                with_elements()

    def pack_column(self, tile: Tile, step: Step, column: Number, number: Number) -> None:
        b = self.b
        with b.loop(0, step.count) as k:
            value = self.load(self.of_b.buffer, [self.place_in_b(tile, column, k.index)])
            b.store(value, self.packed_columns, [number, k.index])

    def place_in_b(self, tile: Tile, column: Number, k: Number) -> Number:
        """The offset in B of a column of the tile and a k of the step."""
        return self.offset("n_b", column) + self.offset("k_b", k)

    def _pack_run(self, step: Step, begin: Number, end: Number, stride: Number) -> None:
        b, source = self.b, self.of_b.buffer
        offset = self.offset("n_b", begin)
        with b.loop(0, step.count) as k:
            of_k = offset + self.offset("k_b", k.index)
            with b.loop(0, end - begin) as column:
                value = self.load(source, [of_k + column.index * stride])
                b.store(value, self.packed_b, [k.index, begin + column.index])

    def _pack_vectors(
        self, source: Buffer, run: _Neighbours, count: Number, packed: Buffer
    ) -> None:
        """Packs a run for each of `count` indices along the other dimension, as whole vectors.
        Values stored past the end of a run are overwritten by the next run, or unused."""
        b, stride, size = self.b, run.stride, run.end - run.begin
        whole = self.whole(size, self.width)
        has_rest = compare("ne", size - whole, 0)
        masks = self.masks_of(size - whole, stride)
        first = self.offset(run.name, run.begin)
        with b.loop(0, count) as other:
            begin = first + self.offset(run.other, other.index)
            with b.loop(0, whole, self.width) as loop:
                vector = self.load_strided(source, begin + loop.index * stride, stride)
                self.store(vector, packed, [other.index, run.begin + loop.index])
            with b.where(has_rest):
                vector = self.load_strided(source, begin + whole * stride, stride, masks)
                self.store(vector, packed, [other.index, run.begin + whole])

    # --- The mainloop's access to operands -----------------------------------------------------

    def row_of_a(self, tile: Tile, step: Step, row: Number) -> Row:
        if not self.has_rows_along_k:
            return lambda k, width=1: self.load(self.packed_a, [k, row], width)
        if not self.reads_a:
            return super().row_of_a(tile, step, row)
        first = self.offset("m_a", row) + step.start

        def load(k: Number, width: int = 1) -> Value:
            return self.load(self.of_a.buffer, [first + k], width)

        return load

    def packed_vector(self, column: Number, k: Number) -> Value:
        if self.has_columns_along_k:
            return super().packed_vector(column, k)
        return self.load(self.packed_b, [k, column], self.width)

    # --- C -------------------------------------------------------------------------------------

    def _if_contiguous(
        self,
        tile: Tile,
        first: Number,
        layout: Layout,
        yes: Callable[[], None],
        no: Callable[[], None],
    ) -> None:
        """Executes `yes` if the vector of columns from `first` on is contiguous in memory, else
        `no`."""
        last = layout.modes[-1]
        if last.stride != 1:
            no()
            return
        is_contiguous: Condition = compare("sle", first + self.width, tile.columns)
        if len(layout.modes) > 1:
            end = (tile.column + first) % last.size + self.width
            is_contiguous = is_contiguous & compare("sle", end, last.size)
        with self.b.where(is_contiguous) as branch:
            yes()
        with branch.otherwise():
            no()

    def store_c(self, tile: Tile) -> None:
        """Stores the rows and columns of the tile that are inside of C."""
        b = self.b
        if self.stores_early and self.columns is not None and self.columns % self.width == 0:
            return
        first = self.signed("divsi", tile.columns, self.width) if self.stores_early else 0
        with b.loop(0, tile.rows) as row:
            base = self.offset("m_c", row.index)
            with b.loop(first, self.groups(tile.columns, self.width)) as group:
                self._store_group(tile, row.index, base, group.index * self.width)

    def _store_group(self, tile: Tile, row: Scalar, base: Number, first: Number) -> None:
        """Stores a vector of columns of a row of the tile. `base`: the offset of the row in C."""
        b, c, row_of_c = self.b, self.of_c, tile.row + row

        def store(column: Number, width: int = 1) -> None:
            at = [base + self.offset("n_c", column)]
            value = self.load(self.tile_accumulators, [row, column], width)
            of_c = tile.column + column
            line = None if width == 1 else line_of(c.n, of_c)
            self.store_result(value, c.buffer, at, (row_of_c, of_c), line)

        def store_elements() -> None:
            count = signed_minimum(tile.columns - first, self.width)
            with b.loop(0, count) as loop:
                store(first + loop.index)

        if self.stores_vectors:
            store_vector = partial(store, first, self.width)
            self._if_contiguous(tile, first, c.n, store_vector, store_elements)
        else:
            store_elements()


def line_of(layout: Layout, column: Number) -> Line | None:
    """The columns that are contiguous in memory with this one, if their number is known."""
    size = layout.modes[-1].size
    return Line(size, column // size) if isinstance(size, int) else None
