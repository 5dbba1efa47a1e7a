"""A matmul for the CPU device: each block is one thread, which computes a tile of C.

A block iterates over K in steps. In each step it packs its parts of A and B into memory that stays
in the core's caches: converted to the type that is computed in, and padded with zeros to whole
groups. So the mainloop has no edges: it keeps the accumulators of some rows and a vector of columns
in registers, and for each k multiplies elements of A with a vector of B. The accumulators of the
whole tile are in memory between the steps, and edges matter again when C is stored.

Products and sums may be contracted: hardware with a fused multiply-add uses it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec import Struct

from aotc.builder import Buffer, Builder
from aotc.kernels.family import CPU
from aotc.kernels.matmul.cpu.kernel import (
    VECTOR_BYTES,
    CpuKernel,
    computed_in,
    has_convertible_types,
)
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, EpilogueBuilder, Problem
from aotc.mlir import ir
from aotc.module_names import REGISTER_LENGTH
from aotc.numbers import Number, Scalar, Value, compare, select, signed_maximum, signed_minimum

# How many blocks a C must make for tiles of half, of full size: every core is to get its share, and
# the smaller a tile is, the more of its time goes into packing.
_ENOUGH_BLOCKS = {2: 20, 1: 64}
_ENOUGH_COLUMNS = 12
# How many k an iteration of the mainloop takes that has the accumulators of one row group.
_UNROLLED = 4
# With vector registers as long as a vector of columns (AVX-512), the mainloop computes as many
# groups of rows and of columns at a time: two multipliers are busy, and an element of A is loaded
# for two vectors of B. In units of 16 bytes, as LLVM's vscale.
_LONG_REGISTERS, _ROW_GROUPS, _COLUMN_GROUPS = 4, 2, 2
# Vectors that are transposed in registers: longer ones take more moves for each element.
_TRANSPOSED_BYTES = 32
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
        # At least one step, which sets the accumulators to 0 even if K is 0.
        with self.b.loop(0, signed_maximum(k, 1), self.variant.tile_k) as loop:
            count = signed_minimum(k - loop.index, self.variant.tile_k)
            step = Step(loop.index, count)
            self.pack_a(tile, step)
            self.pack_b(tile, step)
            self._mainloop(tile, step)
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
        b = self.b
        if self.problem.b.transposed:
            with b.loop(0, self.groups(tile.columns, self.width)) as group:
                self._pack_transposed_group(tile, step, group.index)
            return
        # Row by row, as they lie in memory: what is prefetched is needed.
        rest = self.signed("remsi", tile.columns, self.width)
        whole = self.signed("divsi", tile.columns, self.width)
        has_rest = compare("ne", rest, 0)
        with b.loop(0, step.count) as k:
            row = step.start + k.index
            with b.loop(0, whole) as group:
                at = [row, tile.column + group.index * self.width]
                value = self.load(self.source_b, at, self.width)
                self.store(value, self.packed_b, [group.index, k.index, 0])
            with b.where(has_rest):
                column = tile.column + whole * self.width
                self.pack_elements(whole, k.index, rest, self.source_b, lambda j: [row, column + j])

    def pack_elements(
        self,
        group: Number,
        k: Number,
        count: Number,
        source: Buffer,
        place_of: Callable[[Scalar], Sequence[Number]],
    ) -> None:
        """A row of a group that has `count` columns, the others of which are zeros."""
        b = self.b
        with b.loop(0, count) as column:
            value = self.load(source, place_of(column.index))
            b.store(value, self.packed_b, [group, k, column.index])
        with b.loop(count, self.width) as column:
            b.store(b.zero(self.type), self.packed_b, [group, k, column.index])

    def _pack_transposed_group(self, tile: Tile, step: Step, group: Scalar) -> None:
        """A group of columns of a B whose columns are contiguous in memory."""
        b = self.b
        first = group * self.width
        count = signed_minimum(tile.columns - first, self.width)
        column = tile.column + first
        side = _TRANSPOSED_BYTES // self.bytes
        is_whole = compare("eq", count, self.width)
        done = select(is_whole, self.whole(step.count, side), 0)
        with b.loop(0, done, side) as k:
            row = step.start + k.index
            for part in range(0, self.width, side):
                columns = [
                    self.load(self.source_b, [column + (part + i), row], side) for i in range(side)
                ]
                for i, vector in enumerate(self._transpose(columns)):
                    self.store(vector, self.packed_b, [group, k.index + i, part])
        with b.loop(0, count) as j:
            row_of_b = column + j.index
            with b.loop(done, step.count) as k:
                value = self.load(self.source_b, [row_of_b, step.start + k.index])
                b.store(value, self.packed_b, [group, k.index, j.index])
        with b.loop(count, self.width) as j, b.loop(0, step.count) as k:
            b.store(b.zero(self.type), self.packed_b, [group, k.index, j.index])

    def _transpose(self, vectors: list[Value]) -> list[Value]:
        """As many vectors as each has elements, a power of two: the columns of these rows.

        Each round interleaves the elements of two vectors into two others.
        """
        side = len(vectors)
        interleaved = [place + half for place in range(side) for half in (0, side)]
        masks = [ir.DenseI64ArrayAttr.get(one) for one in (interleaved[:side], interleaved[side:])]
        for _ in range(side.bit_length() - 1):
            vectors = [
                self.b.op("vector.shuffle", pair, pair[0].type, mask=mask)
                for pair in zip(vectors[: side // 2], vectors[side // 2 :], strict=True)
                for mask in masks
            ]
        return vectors

    # --- The mainloop --------------------------------------------------------------------------

    def _mainloop(self, tile: Tile, step: Step) -> None:
        """Adds a step's products to the accumulators, some groups of rows and columns at a time.
        The products of an element of C are added in the same order for all of these."""
        length = self.b.op("vector.vscale", [], "index", **{REGISTER_LENGTH: "unit"})
        has_long_registers = compare("sge", length, _LONG_REGISTERS)
        with self.b.where(has_long_registers) as branch:
            self._multiply_groups(tile, step, _ROW_GROUPS, _COLUMN_GROUPS)
        with branch.otherwise():
            self._multiply_groups(tile, step, 1, 1)

    def _multiply_groups(self, tile: Tile, step: Step, row_groups: int, column_groups: int) -> None:
        """Takes as many groups of rows and of columns at a time, and one where fewer are left."""
        b = self.b
        all_rows = self.groups(tile.rows, self.variant.rows)
        all_columns = self.groups(tile.columns, self.width)
        for start, stop, columns in self._parts(all_columns, column_groups):
            with b.loop(start, stop, columns) as column_group:
                for first, last, rows in self._parts(all_rows, row_groups):
                    with b.loop(first, last, rows) as row_group:
                        self._multiply(step, row_group.index, rows, column_group.index, columns)

    def _parts(self, count: Number, size: int) -> list[tuple[Number, Number, int]]:
        """The bounds and steps of loops over whole parts, and over what is left."""
        if size == 1:
            return [(0, count, 1)]
        whole = self.whole(count, size)
        return [(0, whole, size), (whole, count, 1)]

    def _multiply(
        self, step: Step, row_group: Scalar, row_groups: int, column_group: Scalar, groups: int
    ) -> None:
        """Adds a step's products to the accumulators of `row_groups` x `groups`."""
        b, count = self.b, row_groups * self.variant.rows
        first, column = row_group * self.variant.rows, column_group * self.width
        rows = [first + i for i in range(count)]
        columns = [column + i * self.width for i in range(groups)]
        places = [[row, column] for row in rows for column in columns]
        accumulators = b.choose(
            compare("eq", step.start, 0),
            [self.vector_type] * len(places),
            lambda: [b.zero(self.vector_type)] * len(places),
            lambda: [self.load(self.tile_accumulators, place, self.width) for place in places],
        )
        unrolled = max(_UNROLLED // (row_groups * groups), 1)
        for start, stop, each in self._parts(step.count, unrolled):
            with b.loop(start, stop, each, accumulators) as loop:
                accumulators = loop.carried
                for i in range(each):
                    at = [column_group + j for j in range(groups)]
                    accumulators = self._mma(rows, at, loop.index + i, accumulators)
                loop.next(accumulators)
            accumulators = loop.results
        for place, vector in zip(places, accumulators, strict=True):
            self.store(vector, self.tile_accumulators, place)

    def _mma(
        self,
        rows: Sequence[Number],
        groups: Sequence[Scalar],
        k: Scalar,
        accumulators: Sequence[Value],
    ) -> list[Value]:
        """The accumulators of some rows, plus the vectors of B of some groups of columns times an
        element of each row of A."""
        b, is_transposed = self.b, self.problem.a.transposed
        vectors = [self.load(self.packed_b, self.place_in_b(one, k), self.width) for one in groups]
        found = []
        for number, row in enumerate(rows):
            element = b.load(self.packed_a, [k, row] if is_transposed else [row, k])
            factor = self.broadcast(element)
            before = accumulators[number * len(groups) : (number + 1) * len(groups)]
            for vector, accumulator in zip(vectors, before, strict=True):
                found.append(b.add(accumulator, b.multiply(factor, vector)))
        return found

    def place_in_b(self, group: Scalar, k: Scalar) -> list[Number]:
        """Where a group of columns has its vector for a k in the packed B."""
        return [group, k, 0]

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
