"""A matmul for the CPU device: each block is one thread, which computes a tile of C.

A block iterates over K in steps. The mainloop reads A and B in place, if they have the type that
the kernel computes in, and K is contiguous in A and N in B. Other operands are packed in each step
into memory that stays in the core's caches: they are converted, and B is packed in whole vectors.
The columns of B past the last whole vector are always packed. The accumulators of the whole tile
are in memory between the steps.

Multiplications and additions may be contracted: hardware with fused multiply-add uses it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec import Struct

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import (
    Condition,
    Number,
    Value,
    compare,
    select,
    signed_maximum,
    signed_minimum,
)
from aotc.kernels.cpu.mainloop import (
    LONG_ROWS,
    LONG_VECTORS,
    ROWS_BEHIND,
    Finish,
    Mainloop,
    Row,
)
from aotc.kernels.cpu.packing import Part, pack_columns, pack_rest, pack_transposed
from aotc.kernels.cpu.vectors import VECTOR_BYTES, Vectors
from aotc.kernels.matmul.cpu.kernel import CpuFamily, CpuKernel, computed_in, has_convertible_types
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, EpilogueBuilder, Problem

# The smallest number of blocks for tiles of half (2) and of full (1) size. Every core should get
# its share, but the smaller a tile is, the larger is the fraction of its time for packing.
_ENOUGH_BLOCKS = {2: 20, 1: 64}
_ENOUGH_COLUMNS = 12
# At most this number of columns past the last whole vector are computed by dot products along K. Of
# an unknown number of columns, as many are always computed.
_MOST_APART, _UNKNOWN_APART = 6, 4
# Along a shorter K, those four take about as long as a vector.
_LEAST_K_APART = 96
# Rows of the packed A begin in different sets of a cache.
ROW_GAP_BYTES = 64


class Variant(Struct, frozen=True):
    """Parameters of a kernel. The mainloop keeps `rows` x `vectors` vectors of 64 bytes of
    accumulators in registers, and more with AVX-512. `tile_rows` and `tile_columns`: the largest
    tile of a block, which may have up to a vector more columns at the end of a row of tiles.
    `tile_k`: the longest step along K.

    For a small C, tiles have half of the rows and columns, or three eighths of the rows and a
    quarter of the columns. Their rows are a multiple of the mainloop's rows, and their columns of 4
    times its columns.
    """

    rows: int = 6
    vectors: int = 1
    tile_rows: int = 192
    tile_columns: int = 192
    tile_k: int = 320

    @property
    def m(self) -> int:
        return self.tile_rows

    @property
    def n(self) -> int:
        return self.tile_columns


class Tile(Struct, frozen=True):
    """A block's tile of C: its first row and column, and its numbers of rows and columns."""

    row: Number
    column: Number
    rows: Number
    columns: Number


class Step(Struct, frozen=True):
    """A step along K: its first k, its number of k, and whether it is the last step."""

    start: Number
    count: Number
    is_last: Condition


class _Operands(Struct, frozen=True):
    """A and B as the mainloop reads them."""

    kernel: Kernel
    tile: Tile
    step: Step
    is_packed_b: bool

    def row_of_a(self, v: Vectors, row: Number) -> Row:
        return self.kernel.row_of_a(self.tile, self.step, row)

    def vector_of_b(self, v: Vectors, column: Number, k: Number) -> Value:
        if self.is_packed_b:
            return self.kernel.packed_vector(column, k)
        return self.kernel.vector_in_place(self.tile, self.step, column, k)


class Kernel(CpuKernel):
    """The kernel for one problem; `build` inserts it. `role`: see `Builder.launch`."""

    role = ""

    def __init__(
        self, b: Builder, problem: Problem, variant: Variant, epilogue: EpilogueBuilder | None
    ) -> None:
        super().__init__(b, problem, epilogue, variant.vectors)
        self.variant = variant
        # Steps along K are multiples of `step_unit`.
        self.longest_step, self.step_unit = variant.tile_k, self.width
        # The vectors of columns that the mainloop computes at a time with AVX-512.
        self.long_vectors = LONG_VECTORS

    # --- Host code -----------------------------------------------------------------------------

    def build(self, arguments: Arguments) -> None:
        b, p, first = self.b, self.problem, int(self.problem.batched)
        self.arguments = arguments
        m, n = b.dim(arguments.c, first), b.dim(arguments.c, first + 1)
        k = b.dim(arguments.a, first + (0 if p.a.transposed else 1))
        self.launch(m, n, k, b.dim(arguments.c, 0) if p.batched else 1)

    def launch(self, m: Number, n: Number, k: Number, batches: Number) -> None:
        b = self.b
        # A launch of no blocks is an error.
        with b.where(compare("ne", m * n * batches, 0)):
            rows, columns, across = self.tile_sizes(m, n)
            grid = across, self.groups(m, rows), batches
            shared_bytes = b.signed_cast(self.shared_bytes(rows), "i32")
            with b.launch(grid, 1, shared_bytes, role=self.role) as launch:
                x, y, self.batch = launch.block_ids
                row, column = y * rows, x * columns
                tile_rows = signed_minimum(rows, m - row)
                is_last = compare("eq", x, across - 1)
                tile_columns = select(is_last, n - column, columns)
                self.compute_tile(Tile(row, column, tile_rows, tile_columns), k, rows)

    def tile_sizes(self, m: Number, n: Number) -> tuple[Number, Number, Number]:
        """The rows and columns of tiles, and the number of tiles in a row of tiles. Tiles are the
        largest ones that make enough blocks, and all have about the same size. The last tile of a
        row has the remaining columns, up to a vector more. Rows are a multiple of `LONG_ROWS`. With
        shorter registers, whose groups have other numbers of rows, the last group of a tile
        computes some rows twice; this costs less than threads that wait for a larger tile."""
        v = self.variant
        # With three eighths, powers of two are just below a multiple of the mainloop's rows.
        rows: Number = v.tile_rows * 3 // 8
        columns: Number = v.tile_columns // 4
        elements = m * n
        for part, enough in _ENOUGH_BLOCKS.items():
            tile_rows, tile_columns = v.tile_rows // part, v.tile_columns // part
            is_large = compare("sge", elements, tile_rows * tile_columns * enough)
            rows = select(is_large, tile_rows, rows)
            columns = select(is_large, tile_columns, columns)
        # Few rows become one tile, if the columns make enough blocks, so that B is packed once.
        is_one = compare("sle", m, v.tile_rows)
        for part in (4, 2, 1):
            narrow = v.tile_columns // part
            has_enough = is_one & compare("sge", n, narrow * _ENOUGH_COLUMNS)
            rows = select(has_enough, v.tile_rows, rows)
            columns = select(has_enough, narrow, columns)
        rows = self.even(m, rows, LONG_ROWS)
        whole = signed_maximum(n - self.width, 1)
        columns = self.even(whole, columns, LONG_VECTORS * self.width)
        return rows, columns, self.groups(whole, columns)

    def even(self, size: Number, tile: Number, group: int) -> Number:
        """The size of tiles or steps that divides `size` most evenly, for the same number of them
        as with `tile`. It is a multiple of `group`."""
        return self.groups(self.groups(size, self.groups(size, tile)), group) * group

    # --- Memory --------------------------------------------------------------------------------

    @property
    def reads_a(self) -> bool:
        """Whether the mainloop reads A in place."""
        a = self.problem.a
        return not a.transposed and a.element == self.type

    @property
    def reads_b(self) -> bool:
        """Whether the mainloop reads B in place, except for columns past the last whole vector."""
        b = self.problem.b
        return not b.transposed and b.element == self.type

    @property
    def columns(self) -> int | None:
        """The number of columns that tiles divide, None if unknown."""
        return self.problem.n

    @property
    def columns_apart(self) -> int:
        """The number of columns past the last whole vector that are computed by dot products, as
        they would be a small part of a vector. If the number of columns is unknown, the largest
        one; a tile may have none."""
        if not self.has_rows_along_k:
            return 0
        if self.columns is None:
            return _UNKNOWN_APART if (self.problem.k or 0) >= _LEAST_K_APART else 0
        rest = self.columns % self.width
        return rest if rest <= _MOST_APART else 0

    def end_of_vectors(self, tile: Tile) -> Number:
        """The end of the columns of a tile that are computed as vectors."""
        if not self.columns_apart:
            return tile.columns
        whole = self.whole(tile.columns, self.width)
        if self.columns is not None:
            return whole
        is_apart = compare("sle", tile.columns - whole, self.columns_apart)
        return select(is_apart, whole, tile.columns)

    @property
    def has_rows_along_k(self) -> bool:
        """Whether the mainloop reads A from rows that are contiguous along K."""
        return not self.problem.a.transposed

    @property
    def packed_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of the packed A, in the layout of A, and of the packed B: (group of columns,
        k, column in the group)."""
        v, gap = self.variant, ROW_GAP_BYTES // self.bytes
        a = (v.tile_rows, v.tile_k + gap)
        if self.problem.a.transposed:
            a = (v.tile_k, v.tile_rows + gap)
        if self.reads_a:
            a = (0, 0)
        groups = 1 if self.reads_b else v.tile_columns // self.width + 1
        return a, (groups, v.tile_k + 1, self.width)

    @property
    def columns_shape(self) -> tuple[int, int]:
        # Columns begin in different sets of a cache.
        return self.columns_apart, self.variant.tile_k + ROW_GAP_BYTES // self.bytes

    def packed_bytes(self) -> list[int]:
        """The bytes of the packed A, of the packed B and of the columns for dot products."""
        shapes = (*self.packed_shapes, self.columns_shape)
        return [math.prod(shape) * self.bytes for shape in shapes]

    def shared_bytes(self, rows: Number) -> Number:
        """The shared memory of a block: the packed parts of A and B, followed by the accumulators
        of a tile of `rows` rows."""
        row_bytes = (self.variant.tile_columns + self.width) * self.bytes
        return sum(self.packed_bytes()) + (rows + ROWS_BEHIND) * row_bytes

    def allocate(self) -> None:
        b, v = self.b, self.variant
        memory = b.shared_memory()
        a_bytes, b_bytes, column_bytes = self.packed_bytes()
        a_shape, b_shape = self.packed_shapes
        self.packed_a = b.shared_buffer(memory, 0, a_shape, self.type)
        self.packed_b = b.shared_buffer(memory, a_bytes, b_shape, self.type)
        self.packed_columns = b.shared_buffer(
            memory, a_bytes + b_bytes, self.columns_shape, self.type
        )
        tile = [v.tile_rows + ROWS_BEHIND, v.tile_columns + self.width]
        start = a_bytes + b_bytes + column_bytes
        self.tile_accumulators = b.shared_buffer(memory, start, tile, self.type)

    # --- The kernel ----------------------------------------------------------------------------

    def compute_tile(self, tile: Tile, k: Number, rows: Number) -> None:
        self.allocate()
        self.prepare(tile, rows)
        self.multiply_tile(tile, k)
        self.store_c(tile)

    def multiply_tile(self, tile: Tile, k: Number) -> None:
        """Computes the accumulators of a tile, in steps along K."""
        if isinstance(k, int) and 0 < k <= self.longest_step:
            self._take_step(tile, Step(0, k, is_last=True))
            return
        # At least one step, which sets the accumulators to 0 even if K is 0.
        stop = signed_maximum(k, 1)
        each = self.even(stop, self.longest_step, self.step_unit)
        with self.b.loop(0, stop, each) as loop:
            left = k - loop.index
            is_last = compare("sle", left, each)
            self._take_step(tile, Step(loop.index, signed_minimum(left, each), is_last))

    def _take_step(self, tile: Tile, step: Step) -> None:
        self.start_step(step)
        if not self.reads_a:
            self.pack_a(tile, step)
        self.multiply_step(tile, step)

    def multiply_step(self, tile: Tile, step: Step) -> None:
        """Computes one step along K: whole vectors of columns in place, then packed columns, then
        columns by dot products."""
        start: Number = 0
        end, has_rest = self.end_of_vectors(tile), True
        if self.reads_b:
            start = self.whole(tile.columns, self.width)
            self.multiply_in_place(tile, step, start)
            columns = self.columns
            has_rest = columns is None or not (self.columns_apart or columns % self.width == 0)
        if has_rest:
            with self.b.where(compare("slt", start, end)):
                self.pack_b(tile, step, start)
                self.multiply(tile, step, (start, end), is_packed_b=True)
        if self.columns_apart:
            with self.b.where(compare("slt", end, tile.columns)):
                self.multiply_columns(tile, step, end)

    def multiply_padded(self, tile: Tile, step: Step) -> None:
        """Computes one step along K of a B that has whole vectors of columns: those past the last
        column are multiplied, too, unless the last columns are computed by dot products."""
        end = self.end_of_vectors(tile)
        self.multiply(tile, step, (0, end), is_packed_b=False)
        if self.columns_apart:
            with self.b.where(compare("slt", end, tile.columns)):
                self.multiply_columns(tile, step, end)

    def multiply(
        self,
        tile: Tile,
        step: Step,
        columns: tuple[Number, Number],
        *,
        is_packed_b: bool,
        finish: Finish | None = None,
        prefetch_b: Callable[[Number, Number], None] | None = None,
    ) -> None:
        """Computes the columns of the tile from `columns[0]` up to `columns[1]`. The other
        arguments are those of `Mainloop.multiply`."""
        start, stop = columns
        mainloop, is_first = self._mainloop(tile, step, is_packed_b=is_packed_b)
        mainloop.multiply(
            tile.rows,
            stop,
            step.count,
            is_first,
            start=start,
            finish=finish,
            prefetch_b=prefetch_b,
        )

    def multiply_in_place(self, tile: Tile, step: Step, stop: Number) -> None:
        """Computes the columns up to `stop`, which are whole vectors, with B in place."""
        self.multiply(tile, step, (0, stop), is_packed_b=False)

    def multiply_columns(self, tile: Tile, step: Step, start: Number) -> None:
        """Computes the columns from `start` on by dot products, `columns_apart` at a time."""
        mainloop, is_first = self._mainloop(tile, step, is_packed_b=True)
        most = self.columns_apart
        count = most if self.columns is not None else tile.columns - start
        with self.b.loop(0, count) as loop:
            self.pack_column(tile, step, start + loop.index, loop.index)
        part = tile.rows, step.count
        mainloop.multiply_columns(part, (start, count, most), self.packed_columns, is_first)

    def _mainloop(self, tile: Tile, step: Step, *, is_packed_b: bool) -> tuple[Mainloop, Condition]:
        operands = _Operands(self, tile, step, is_packed_b)
        mainloop = Mainloop(
            self, self.variant.rows, operands, self.tile_accumulators, self.long_vectors
        )
        return mainloop, compare("eq", step.start, 0)

    def prepare(self, tile: Tile, rows: Number) -> None:
        """Prepares a tile, before its first step. Tiles have at most `rows` rows."""
        given = self.arguments
        self.source_a = self.matrix(given.a, unsigned=self.problem.a.unsigned)
        self.source_b = self.matrix(given.b, unsigned=self.problem.b.unsigned)
        self.c = self.matrix(given.c)

    def start_step(self, step: Step) -> None:
        """Prepares a step, before packing."""

    # --- Packing -------------------------------------------------------------------------------

    def pack_a(self, tile: Tile, step: Step) -> None:
        """Packs A's part, in the layout of A."""
        count, other = tile.rows, step.count
        if self.problem.a.transposed:
            count, other = other, count
        with self.b.loop(0, count) as loop:
            source = [self.row_of(tile, loop.index), step.start]
            if self.problem.a.transposed:
                source = [step.start + loop.index, tile.row]
            self.copy_row(other, self.source_a, source, self.packed_a, loop.index)

    def copy_row(
        self,
        count: Number,
        source: Buffer,
        first: Sequence[Number],
        target: Buffer,
        row: Number,
    ) -> None:
        """Converts `count` contiguous elements, from the indices `first` on, and stores them as a
        row of `target`."""
        *leading, column = first
        for j, width in self.each_vector(0, count, self.width):
            value = self.load(source, [*leading, column + j], width)
            self.store(value, target, [row, j])

    def pack_b(self, tile: Tile, step: Step, start: Number) -> None:
        """Packs the columns of B's part from `start` on, in groups. Columns past the tile's last
        one are zeros."""
        part = Part(step.start, tile.column + start, step.count, tile.columns - start)
        if self.reads_b:
            pack_rest(self, self.source_b, part, self.packed_b)
        elif self.problem.b.transposed:
            pack_transposed(self, self.source_b, part, self.packed_b)
        else:
            pack_columns(self, self.source_b, part, self.packed_b)

    def pack_column(self, tile: Tile, step: Step, column: Number, number: Number) -> None:
        """Packs a column of B's part as the packed column `number`."""
        b = self.b
        with b.loop(0, step.count) as k:
            at = [step.start + k.index, tile.column + column]
            value = self.load(self.source_b, at[::-1] if self.problem.b.transposed else at)
            b.store(value, self.packed_columns, [number, k.index])

    # --- The mainloop's access to operands -----------------------------------------------------

    def row_of_a(self, tile: Tile, step: Step, row: Number) -> Row:
        """Access to a row of A of the tile."""

        def load(k: Number, width: int = 1) -> Value:
            if self.reads_a:
                return self.load(self.source_a, [self.row_of(tile, row), step.start + k], width)
            at = [k, row] if self.problem.a.transposed else [row, k]
            return self.load(self.packed_a, at, width)

        return load

    def row_of(self, tile: Tile, row: Number) -> Number:
        """The row of A and C for a row of the tile. A transposed A has only consecutive rows."""
        return tile.row + row

    def column_of(self, tile: Tile, column: Number) -> Number:
        """The column of B for a column of the tile."""
        return tile.column + column

    def vector_in_place(self, tile: Tile, step: Step, column: Number, k: Number) -> Value:
        at = [step.start + k, self.column_of(tile, column)]
        return self.load(self.source_b, at, self.width)

    def packed_vector(self, column: Number, k: Number) -> Value:
        group = 0 if self.reads_b else self.signed("divsi", column, self.width)
        return self.load(self.packed_b, [group, k, 0], self.width)

    # --- C -------------------------------------------------------------------------------------

    @property
    def stores_early(self) -> bool:
        """Whether whole vectors of accumulators are stored from registers."""
        return False

    def store_c(self, tile: Tile) -> None:
        """Stores the rows and columns of the tile that are inside of C."""
        b = self.b
        if self.stores_early and self.columns is not None and self.columns % self.width == 0:
            return
        stored = self.whole(tile.columns, self.width)
        with b.loop(0, tile.rows) as i:
            row = self.row_of(tile, i.index)
            if self.stores_early:
                each = self.each_shorter_vector(stored, tile.columns, self.width)
            else:
                each = self.each_stored(0, tile.columns, self.width)
            for j, width in each:
                column = tile.column + j
                value = self.load(self.tile_accumulators, [i.index, j], width)
                self.store_result(value, self.c, [row, column], (row, column))


class CpuBlocked(CpuFamily[Problem]):
    """See the module's docstring."""

    name = "blocks"
    variant_type = Variant
    kernel_type = Kernel

    def can_implement(self, problem: Problem, variant: Variant) -> bool:
        """See `KernelFamily`. All sizes, pitches and transpositions are supported."""
        columns = variant.vectors * VECTOR_BYTES // ELEMENT_BYTES[computed_in(problem)]
        return (
            variant.tile_rows % math.lcm(variant.rows, LONG_ROWS) == 0
            and variant.tile_columns % (4 * LONG_VECTORS * columns) == 0
            and variant.tile_k % columns == 0
            and has_convertible_types(problem)
        )

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        """See `KernelFamily`. The first variant fits a second-level cache of 512 KiB."""
        part = 2 if computed_in(problem) == "f64" else 1
        found = [
            Variant(tile_rows=rows // part, tile_columns=columns // part, tile_k=tile_k)
            for rows, columns, tile_k in ((192, 192, 320), (96, 576, 384))
        ]
        return tuple(variant for variant in found if self.can_implement(problem, variant))


CPU_BLOCKED = CpuBlocked()
