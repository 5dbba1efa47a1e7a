"""A matmul for the CPU device: each block is one thread, which computes a tile of C.

A block iterates over K in steps. In each step it packs its parts of A and B into memory that stays
in the core's caches: converted to the type that is computed in, and padded with zeros to whole
groups. So the mainloop has no edges. The accumulators of the whole tile are in memory between the
steps, and edges matter again when C is stored.

Products and sums may be contracted: hardware with a fused multiply-add uses it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from aotc.builder import Buffer, Builder
from aotc.kernels.cpu.mainloop import Factors, Mainloop
from aotc.kernels.cpu.packing import Part, pack_columns, pack_transposed
from aotc.kernels.cpu.vectors import VECTOR_BYTES
from aotc.kernels.family import CPU
from aotc.kernels.matmul.cpu.kernel import CpuKernel, computed_in, has_convertible_types
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, EpilogueBuilder, Problem
from aotc.numbers import Number, compare, select, signed_maximum, signed_minimum

# How many blocks a C must make for tiles of half, of full size: every core is to get its share, and
# the smaller a tile is, the more of its time goes into packing.
_ENOUGH_BLOCKS = {2: 20, 1: 64}
_ENOUGH_COLUMNS = 12
# Rows of the packed A begin in different sets of a cache.
_ROW_GAP_BYTES = 64


class Variant(Struct, frozen=True):
    """The mainloop has `rows` x `vectors` of 64 bytes of accumulators in registers. `tile_rows` and
    `tile_columns` are the most that a block computes, `tile_k` is the step along K.

    For small C, tiles have half as many rows and columns, or three eighths and a quarter: their
    rows are a multiple of 4 `rows`, their columns of 4 `vectors`.
    """

    rows: int = 6
    vectors: int = 1
    tile_rows: int = 192
    tile_columns: int = 256
    tile_k: int = 256

    @property
    def m(self) -> int:
        return self.tile_rows

    @property
    def n(self) -> int:
        return self.tile_columns


class Tile(Struct, frozen=True):
    """A block's tile of C: where it begins, and how many rows and columns of C it has."""

    row: Number
    column: Number
    rows: Number
    columns: Number


class Step(Struct, frozen=True):
    """A step along K: where it begins, and how many k it has."""

    start: Number
    count: Number


class Kernel(CpuKernel):
    """The kernel for one problem; `build` inserts it."""

    # Whether the packed B has a dimension for groups of columns.
    has_column_groups = True

    def __init__(
        self, b: Builder, problem: Problem, variant: Variant, epilogue: EpilogueBuilder | None
    ) -> None:
        super().__init__(b, problem, epilogue, variant.vectors)
        self.variant = variant

    # --- The host's part -----------------------------------------------------------------------

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
            rows, columns = self._tile_sizes(m, n)
            grid = self.groups(n, columns), self.groups(m, rows), batches
            shared_bytes = b.signed_cast(self.shared_bytes(rows), "i32")
            with b.launch(grid, 1, shared_bytes) as launch:
                x, y, self.batch = launch.block_ids
                row, column = y * rows, x * columns
                tile_rows = signed_minimum(rows, m - row)
                tile_columns = signed_minimum(columns, n - column)
                self._kernel(Tile(row, column, tile_rows, tile_columns), k, rows)

    def _tile_sizes(self, m: Number, n: Number) -> tuple[Number, Number]:
        """Rows and columns of tiles: the largest that make enough blocks, all of about one size."""
        v = self.variant
        # A power of two is a little less than a multiple of the mainloop's rows then.
        rows: Number = v.tile_rows * 3 // 8
        columns: Number = v.tile_columns // 4
        elements = m * n
        for part, enough in _ENOUGH_BLOCKS.items():
            tile_rows, tile_columns = v.tile_rows // part, v.tile_columns // part
            is_large = compare("sge", elements, tile_rows * tile_columns * enough)
            rows = select(is_large, tile_rows, rows)
            columns = select(is_large, tile_columns, columns)
        # Few rows are one tile, if its columns make enough blocks: B is packed once.
        is_one = compare("sle", m, v.tile_rows)
        for part in (4, 2, 1):
            narrow = v.tile_columns // part
            has_enough = is_one & compare("sge", n, narrow * _ENOUGH_COLUMNS)
            rows = select(has_enough, v.tile_rows, rows)
            columns = select(has_enough, narrow, columns)
        return self._even(m, rows, v.rows), self._even(n, columns, self.width)

    def _even(self, size: Number, tile: Number, group: int) -> Number:
        """A tile size, a multiple of `group`, that needs as many tiles as `tile` does, of about
        equal sizes."""
        return self.groups(self.groups(size, self.groups(size, tile)), group) * group

    # --- Memory --------------------------------------------------------------------------------

    @property
    def packed_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of the packed A, stored as in memory, and of the packed B: groups of columns,
        rows, columns."""
        v, gap = self.variant, _ROW_GAP_BYTES // self.bytes
        a = (v.tile_rows, v.tile_k + gap)
        if self.problem.a.transposed:
            a = (v.tile_k, v.tile_rows + gap)
        return a, (v.tile_columns // self.width, v.tile_k + 1, self.width)

    def _packed_bytes(self) -> list[int]:
        """The bytes of the packed A and of the packed B."""
        return [math.prod(shape) * self.bytes for shape in self.packed_shapes]

    def shared_bytes(self, rows: Number) -> Number:
        """The packed parts of A and B, and behind them the accumulators of a tile of `rows`."""
        return sum(self._packed_bytes()) + rows * (self.variant.tile_columns * self.bytes)

    def _allocate(self) -> None:
        b, v = self.b, self.variant
        memory = b.shared_memory()
        a_bytes, b_bytes = self._packed_bytes()
        a_shape, b_shape = self.packed_shapes
        self.packed_a = b.shared_buffer(memory, 0, a_shape, self.type)
        self.packed_b = b.shared_buffer(memory, a_bytes, b_shape, self.type)
        tile = [v.tile_rows, v.tile_columns]
        self.tile_accumulators = b.shared_buffer(memory, a_bytes + b_bytes, tile, self.type)

    # --- The kernel ----------------------------------------------------------------------------

    def _kernel(self, tile: Tile, k: Number, rows: Number) -> None:
        self._allocate()
        self.prepare(tile, rows)
        factors = Factors(
            self.packed_a, self.packed_b, self.problem.a.transposed, self.has_column_groups
        )
        mainloop = Mainloop(self, self.variant.rows, factors, self.tile_accumulators)
        # At least one step, which sets the accumulators to 0 even if K is 0.
        with self.b.loop(0, signed_maximum(k, 1), self.variant.tile_k) as loop:
            count = signed_minimum(k - loop.index, self.variant.tile_k)
            step = Step(loop.index, count)
            self.pack_a(tile, step)
            self.pack_b(tile, step)
            is_first = compare("eq", step.start, 0)
            mainloop.multiply(tile.rows, tile.columns, step.count, is_first)
        self.store_c(tile)

    def prepare(self, tile: Tile, rows: Number) -> None:
        """Makes what a tile needs before its first step; tiles have at most `rows` rows."""
        del tile, rows
        given = self.arguments
        self.source_a, self.source_b = self.matrix(given.a), self.matrix(given.b)
        self.c = self.matrix(given.c)

    # --- Packing -------------------------------------------------------------------------------

    def pack_a(self, tile: Tile, step: Step) -> None:
        """A's part, as it lies in memory; the rows behind the tile's last are zeros."""
        b = self.b
        padded = self.groups(tile.rows, self.variant.rows) * self.variant.rows
        if self.problem.a.transposed:
            with b.loop(0, step.count) as k:
                source = [step.start + k.index, tile.row]
                self.copy_row(tile.rows, self.source_a, source, self.packed_a, k.index)
                with b.loop(tile.rows, padded) as row:
                    b.store(b.zero(self.type), self.packed_a, [k.index, row.index])
            return
        with b.loop(0, tile.rows) as row:
            source = [tile.row + row.index, step.start]
            self.copy_row(step.count, self.source_a, source, self.packed_a, row.index)
        self.clear_rows(tile.rows, padded, step)

    def clear_rows(self, start: Number, stop: Number, step: Step) -> None:
        """Sets rows of the packed A to 0."""
        b = self.b
        with b.loop(start, stop) as row, b.loop(0, step.count) as k:
            b.store(b.zero(self.type), self.packed_a, [row.index, k.index])

    def copy_row(
        self,
        count: Number,
        source: Buffer,
        first: Sequence[Number],
        target: Buffer,
        row: Number,
    ) -> None:
        """Converts `count` neighbours, from the indices `first` on, and stores them as a row."""
        *leading, column = first
        for start, stop, width in self.vectorized(count):
            with self.b.loop(start, stop, width) as loop:
                value = self.load(source, [*leading, column + loop.index], width)
                self.store(value, target, [row, loop.index])

    def pack_b(self, tile: Tile, step: Step) -> None:
        """B's part, in groups of columns; the columns behind the tile's last are zeros."""
        part = Part(step.start, tile.column, step.count, tile.columns)
        pack = pack_transposed if self.problem.b.transposed else pack_columns
        pack(self, self.source_b, part, self.packed_b)

    # --- C -------------------------------------------------------------------------------------

    def store_c(self, tile: Tile) -> None:
        """The rows and columns of the tile that are C's."""
        b = self.b
        with b.loop(0, tile.rows) as i:
            row = tile.row + i.index
            each = self.vectorized(tile.columns) if self.stores_vectors else [(0, tile.columns, 1)]
            for start, stop, width in each:
                with b.loop(start, stop, width) as j:
                    column = tile.column + j.index
                    value = self.load(self.tile_accumulators, [i.index, j.index], width)
                    self.store_result(value, self.c, [row, column], (row, column))


class CpuBlocked(MatmulFamily[Problem]):
    """See the module's docstring."""

    name = "blocks"
    mnemonic = "cpu"
    target = CPU
    variant_type = Variant
    has_cost_model = False

    def can_take(self, problem: Problem, variant: Variant) -> bool:
        """All sizes, pitches and transpositions are handled: types alone matter."""
        columns = variant.vectors * VECTOR_BYTES // ELEMENT_BYTES[computed_in(problem)]
        return (
            variant.tile_rows % (4 * variant.rows) == 0
            and variant.tile_columns % (4 * columns) == 0
            and has_convertible_types(problem)
        )

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        """The first one fits a second-level cache of 512 KiB."""
        part = 2 if computed_in(problem) == "f64" else 1
        found = [
            Variant(tile_rows=rows // part, tile_columns=columns // part, tile_k=tile_k)
            for rows, columns, tile_k in ((192, 256, 256), (96, 512, 384))
        ]
        return tuple(variant for variant in found if self.can_take(problem, variant))

    def insert(
        self,
        b: Builder,
        problem: Problem,
        variant: Variant,
        arguments: Arguments,
        epilogue: EpilogueBuilder | None = None,
    ) -> None:
        Kernel(b, problem, variant, epilogue).build(arguments)


CPU_BLOCKED = CpuBlocked()
