"""A product of matrices for the CPU device: a thread a block, which computes a tile of C.

A block goes along K in steps. Of each it packs its part of A and of B into memory that stays in the
core's caches: converted to the type that is computed in, filled up with zeros to whole groups. So
the loop that multiplies knows no edges: it has some rows and columns of sums in vector registers,
and for each k multiplies elements of A with a vector of B. The sums of the whole tile lie in memory
between the steps, and edges count again where they are written to C.

Products and sums may be contracted: hardware with a fused multiply-add uses it.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from aotc.kernels.family import CPU
from aotc.kernels.matmul.cpu.writer import BlockWriter, Buffer
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Finish, Matrix, Place, Problem

_WORKGROUP = "#gpu.address_space<workgroup>"
# What the CPU's lowering has conversions for.
_FLOATS = ("f64", "f32", "f16", "bf16")
_INTEGERS = ("i32", "i8")
_VECTOR_BYTES = 64
# How many blocks a C must make for tiles of half, of full size: every core is to get its share, and
# the smaller a tile is, the more of its time goes into packing.
_ENOUGH_BLOCKS = {2: 20, 1: 64}
# How many k the innermost loop takes in a turn.
_UNROLLED = 4
# Vectors that are transposed in registers: longer ones take more moves for each element.
_TRANSPOSED_BYTES = 32
# Rows of the packed A begin in different sets of a cache.
_ROW_GAP_BYTES = 64


class Variant(Struct, frozen=True):
    """`rows` x `vectors` of 64 bytes are the sums that the innermost loop has in registers;
    `tile_rows` and `tile_columns` are the most that a block computes, `depth` is a step along K.

    For small C, tiles are cut in halves, twice at most: their rows are a multiple of 4 `rows`,
    their columns of 4 `vectors`.
    """

    rows: int = 6
    vectors: int = 1
    tile_rows: int = 192
    tile_columns: int = 256
    depth: int = 256

    @property
    def m(self) -> int:
        return self.tile_rows

    @property
    def n(self) -> int:
        return self.tile_columns


def computed_in(problem: Problem) -> str:
    """The type of products and sums: the accumulator's, or f32 for what is narrower than that."""
    return problem.accumulator if ELEMENT_BYTES[problem.accumulator] >= 4 else _wide(problem)


def _wide(problem: Problem) -> str:
    return "i32" if problem.accumulator.startswith("i") else "f32"


def _columns(problem: Problem, variant: Variant) -> int:
    return variant.vectors * _VECTOR_BYTES // ELEMENT_BYTES[computed_in(problem)]


class Tile(Struct, frozen=True):
    """A block's tile of C, as values: where it begins, and how many rows and columns it has."""

    row: str
    column: str
    rows: str
    columns: str


class Step(Struct, frozen=True):
    """A step along K, as values: where it begins, and how many there are."""

    start: str
    count: str


# The last two indices of an element, from its number in a run.
_Place = Callable[[str], tuple[str, str]]


class Kernel(BlockWriter):
    def __init__(self, problem: Problem, variant: Variant, finish: Finish | None) -> None:
        self._problem = problem
        self._variant = variant
        self._finish = finish
        super().__init__(computed_in(problem), _columns(problem, variant))

    # ---------------------------------------------------------------------------------------------
    # The host's part

    def function(self, name: str) -> str:
        e, p = self._emitter, self._problem
        first = 1 if p.batched else 0
        m = self._size("%c", p.c, first)
        n = self._size("%c", p.c, first + 1)
        k = self._size("%a", p.a, first + (0 if p.a.transposed else 1))
        batches = self._size("%c", p.c, 0) if p.batched else e.constant(1)
        elements = self._op("muli", self._op("muli", m, n), batches)
        # A launch of no blocks is an error.
        e.open(f"scf.if {self._compare('ne', elements, self._number(0))} {{")
        self._launch(m, n, k, batches)
        e.close()
        e.line("return")
        return f"func.func @{name}({p.signature}) {{\n{e.text()}\n}}\n"

    def _launch(self, m: str, n: str, k: str, batches: str) -> None:
        e = self._emitter
        rows, columns = self._tile_sizes(m, n)
        grid_x = self._op("ceildivsi", n, columns)
        grid_y = self._op("ceildivsi", m, rows)
        one = self._number(1)
        shared = e.value(f"arith.index_cast {self._shared_bytes(rows)} : index to i32")
        e.open(
            f"gpu.launch blocks(%bx, %by, %bz) in (%gx = {grid_x}, %gy = {grid_y}, "
            f"%gz = {batches}) threads(%tx, %ty, %tz) in (%sx = {one}, %sy = {one}, %sz = {one}) "
            f"dynamic_shared_memory_size {shared} {{"
        )
        self._kernel(m, n, k, rows, columns)
        e.line("gpu.terminator")
        e.close()

    def _size(self, name: str, matrix: Matrix, dimension: int) -> str:
        number = self._emitter.constant(dimension)
        return self._emitter.value(f"memref.dim {name}, {number} : {matrix.type}")

    def _tile_sizes(self, m: str, n: str) -> tuple[str, str]:
        """Rows and columns of tiles: the largest that make enough blocks, all of about one size."""
        v = self._variant
        rows, columns = self._number(v.tile_rows // 4), self._number(v.tile_columns // 4)
        elements = self._op("muli", m, n)
        for part, enough in _ENOUGH_BLOCKS.items():
            tile = (v.tile_rows // part) * (v.tile_columns // part)
            limit = self._number(tile * enough)
            is_large = self._compare("sge", elements, limit)
            rows = self._choose(is_large, self._number(v.tile_rows // part), rows)
            columns = self._choose(is_large, self._number(v.tile_columns // part), columns)
        return self._even(m, rows, v.rows), self._even(n, columns, self._columns)

    def _even(self, size: str, tile: str, group: int) -> str:
        """What makes as many tiles as `tile` does, of about one size, in whole groups."""
        each = self._op("ceildivsi", size, self._op("ceildivsi", size, tile))
        return self._op("muli", self._groups(each, group), self._number(group))

    # ---------------------------------------------------------------------------------------------
    # Memory

    @property
    def _a_shape(self) -> tuple[int, int]:
        v, gap = self._variant, _ROW_GAP_BYTES // self._bytes
        if self._problem.a.transposed:
            return v.depth, v.tile_rows + gap
        return v.tile_rows, v.depth + gap

    def _packed_bytes(self) -> tuple[int, int]:
        """Of A, of B."""
        rows, columns = self._a_shape
        return rows * columns * self._bytes, (self._variant.depth + 1) * (
            self._variant.tile_columns * self._bytes
        )

    def _shared_bytes(self, rows: str) -> str:
        """The packed parts of A and B, and behind them the tile's sums."""
        pitch = self._number(self._variant.tile_columns * self._bytes)
        packed = self._number(sum(self._packed_bytes()))
        return self._op("addi", packed, self._op("muli", rows, pitch))

    def _buffers(self) -> tuple[Buffer, Buffer, Buffer]:
        """The packed A (as it lies in memory), the packed B (groups of columns, rows, columns), and
        the sums (rows, columns)."""
        e, v = self._emitter, self._variant
        shared = e.value(f"gpu.dynamic_shared_memory : memref<?xi8, {_WORKGROUP}>")
        a_bytes, b_bytes = self._packed_bytes()
        shapes = (
            (0, self._a_shape),
            (a_bytes, (v.tile_columns // self._columns, v.depth + 1, self._columns)),
            (a_bytes + b_bytes, (v.tile_rows, v.tile_columns)),
        )
        found = []
        for start, shape in shapes:
            sizes = "x".join(map(str, shape))
            type_ = f"memref<{sizes}x{self._type}, {_WORKGROUP}>"
            place = f"{shared}[{self._number(start)}][]"
            view = e.value(f"memref.view {place} : memref<?xi8, {_WORKGROUP}> to {type_}")
            found.append(Buffer(view, type_, self._type))
        a, b, sums = found
        return a, b, sums

    def _given(self, name: str, matrix: Matrix) -> Buffer:
        leading = ("%bz",) if self._problem.batched else ()
        return Buffer(name, matrix.type, matrix.element, leading)

    # ---------------------------------------------------------------------------------------------
    # The kernel

    def _kernel(self, m: str, n: str, k: str, rows: str, columns: str) -> None:
        row, column = self._op("muli", "%by", rows), self._op("muli", "%bx", columns)
        tile = Tile(
            row,
            column,
            self._op("minsi", rows, self._op("subi", m, row)),
            self._op("minsi", columns, self._op("subi", n, column)),
        )
        a, b, sums = self._buffers()
        self._prepare(tile, rows)
        # At least one step: it makes the sums 0 where K is.
        end = self._op("maxsi", k, self._number(1))
        with self._loop(self._number(0), end, self._variant.depth) as start:
            left = self._op("subi", k, start)
            step = Step(start, self._op("minsi", left, self._number(self._variant.depth)))
            self._pack_a(tile, step, a)
            self._pack_b(tile, step, b)
            self._multiply(tile, step, a, b, sums)
        self._write(tile, sums)

    def _prepare(self, tile: Tile, rows: str) -> None:
        """What a tile needs before its first step; `rows` is how many tiles have."""

    def _groups(self, size: str, group: int) -> str:
        return self._op("ceildivsi", size, self._number(group))

    # ---------------------------------------------------------------------------------------------
    # Packing

    def _pack_a(self, tile: Tile, step: Step, packed: Buffer) -> None:
        """A's part, its rows as they lie; rows of the tile that are not there are zeros."""
        source = self._given("%a", self._problem.a)
        groups = self._groups(tile.rows, self._variant.rows)
        padded = self._op("muli", groups, self._number(self._variant.rows))
        if self._problem.a.transposed:
            with self._loop(self._number(0), step.count) as k:
                at = self._op("addi", step.start, k)
                self._copy(
                    tile.rows,
                    (source, lambda i: (at, self._op("addi", tile.row, i))),
                    (packed, lambda i: (k, i)),
                )
                with self._loop(tile.rows, padded) as i:
                    self._store(self._zero(), packed, k, i)
            return
        with self._loop(self._number(0), tile.rows) as i:
            row = self._op("addi", tile.row, i)
            self._copy(
                step.count,
                (source, lambda k: (row, self._op("addi", step.start, k))),
                (packed, lambda k: (i, k)),
            )
        with (
            self._loop(tile.rows, padded) as i,
            self._loop(self._number(0), step.count) as k,
        ):
            self._store(self._zero(), packed, i, k)

    def _copy(
        self, count: str, source: tuple[Buffer, _Place], target: tuple[Buffer, _Place]
    ) -> None:
        """Converts and copies neighbours: vectors of them, then those that are left."""
        width = self._columns
        rest = self._op("remsi", count, self._number(width))
        whole = self._op("subi", count, rest)
        (one, from_place), (other, to_place) = source, target
        with self._loop(self._number(0), whole, width) as i:
            vector = self._load_vector(one, *from_place(i))
            self._store_vector(self._convert(vector, one.element, width), other, *to_place(i))
        with self._loop(whole, count) as i:
            value = self._load(one, *from_place(i))
            self._store(self._convert(value, one.element), other, *to_place(i))

    def _pack_b(self, tile: Tile, step: Step, packed: Buffer) -> None:
        """B's part, in groups of columns; columns of the last one that are not there are zeros."""
        if self._problem.b.transposed:
            groups = self._groups(tile.columns, self._columns)
            with self._loop(self._number(0), groups) as group:
                self._pack_b_columns(tile, step, group, packed)
            return
        # A row after the other, as they lie: what is read ahead is needed.
        rest = self._op("remsi", tile.columns, self._number(self._columns))
        whole = self._op("divsi", tile.columns, self._number(self._columns))
        is_rest = self._compare("ne", rest, self._number(0))
        with self._loop(self._number(0), step.count) as k:
            self._pack_b_row(tile, step, k, whole, packed)
            self._emitter.open(f"scf.if {is_rest} {{")
            self._pack_b_rest(tile, step, k, whole, rest, packed)
            self._emitter.close()

    def _pack_b_row(self, tile: Tile, step: Step, k: str, groups: str, packed: Buffer) -> None:
        source = self._given("%b", self._problem.b)
        row = self._op("addi", step.start, k)
        with self._loop(self._number(0), groups) as group:
            first = self._op("muli", group, self._number(self._columns))
            column = self._op("addi", tile.column, first)
            vector = self._load_vector(source, row, column)
            converted = self._convert(vector, source.element, self._columns)
            self._store_vector(converted, packed, group, k, self._number(0))

    def _pack_b_rest(
        self, tile: Tile, step: Step, k: str, group: str, count: str, packed: Buffer
    ) -> None:
        """A row of a group that has `count` columns."""
        source = self._given("%b", self._problem.b)
        row = self._op("addi", step.start, k)
        first = self._op("muli", group, self._number(self._columns))
        column = self._op("addi", tile.column, first)
        with self._loop(self._number(0), count) as j:
            value = self._load(source, row, self._op("addi", column, j))
            self._store(self._convert(value, source.element), packed, group, k, j)
        with self._loop(count, self._number(self._columns)) as j:
            self._store(self._zero(), packed, group, k, j)

    def _pack_b_columns(self, tile: Tile, step: Step, group: str, packed: Buffer) -> None:
        """A group of columns of a B whose columns lie in memory."""
        source = self._given("%b", self._problem.b)
        first = self._op("muli", group, self._number(self._columns))
        left = self._op("subi", tile.columns, first)
        count = self._op("minsi", left, self._number(self._columns))
        column = self._op("addi", tile.column, first)
        side = _TRANSPOSED_BYTES // self._bytes
        is_whole = self._compare("eq", count, self._number(self._columns))
        rest = self._op("remsi", step.count, self._number(side))
        whole = self._op("subi", step.count, rest)
        done = self._choose(is_whole, whole, self._number(0))
        with self._loop(self._number(0), done, side) as k:
            row = self._op("addi", step.start, k)
            for part in range(0, self._columns, side):
                self._pack_square((column, row), (group, k), part, side, packed)
        with self._loop(self._number(0), count) as j:
            row = self._op("addi", column, j)
            with self._loop(done, step.count) as k:
                value = self._load(source, row, self._op("addi", step.start, k))
                self._store(self._convert(value, source.element), packed, group, k, j)
        with (
            self._loop(count, self._number(self._columns)) as j,
            self._loop(self._number(0), step.count) as k,
        ):
            self._store(self._zero(), packed, group, k, j)

    def _pack_square(
        self, place: tuple[str, str], target: tuple[str, str], j: int, side: int, packed: Buffer
    ) -> None:
        """As many columns of a transposed B, from the group's number j on, as there are rows."""
        source = self._given("%b", self._problem.b)
        (column, row), (group, k) = place, target
        vectors = []
        for number in range(side):
            at = self._op("addi", column, self._number(j + number))
            vector = self._load_vector(source, at, row, width=side)
            vectors.append(self._convert(vector, source.element, side))
        for number, vector in enumerate(self._transpose(vectors)):
            at = self._op("addi", k, self._number(number))
            self._store_vector(vector, packed, group, at, self._number(j), width=side)

    def _transpose(self, vectors: list[str]) -> list[str]:
        """As many vectors as each has elements, a power of two: the columns of these rows.

        Each round puts the elements of two vectors alternately into two others.
        """
        side = len(vectors)
        type_ = f"vector<{side}x{self._type}>"
        halves = [
            [
                place + number * side
                for place in range(start, start + side // 2)
                for number in (0, 1)
            ]
            for start in (0, side // 2)
        ]
        for _ in range(side.bit_length() - 1):
            pairs = zip(vectors[: side // 2], vectors[side // 2 :], strict=True)
            vectors = [
                self._emitter.value(f"vector.shuffle {one}, {other} {half} : {type_}, {type_}")
                for one, other in pairs
                for half in halves
            ]
        return vectors

    # ---------------------------------------------------------------------------------------------
    # Multiplying

    def _multiply(self, tile: Tile, step: Step, a: Buffer, b: Buffer, sums: Buffer) -> None:
        """Adds a step's products to the tile's sums, a group of rows and columns at a time."""
        is_first = self._compare("eq", step.start, self._number(0))
        row_groups = self._groups(tile.rows, self._variant.rows)
        column_groups = self._groups(tile.columns, self._columns)
        with (
            self._loop(self._number(0), column_groups) as column_group,
            self._loop(self._number(0), row_groups) as row_group,
        ):
            first = self._op("muli", row_group, self._number(self._variant.rows))
            column = self._op("muli", column_group, self._number(self._columns))
            rows = [
                self._op("addi", first, self._number(i)) if i else first
                for i in range(self._variant.rows)
            ]
            begin = self._first_sums(is_first, rows, column, sums)
            into = Buffer(b.name, b.type, b.element, (column_group,))
            rest = self._op("remsi", step.count, self._number(_UNROLLED))
            whole = self._op("subi", step.count, rest)
            most = self._add_products((self._number(0), whole), _UNROLLED, rows, begin, a, into)
            end = self._add_products((whole, step.count), 1, rows, most, a, into)
            for row, value in zip(rows, end, strict=True):
                self._store_vector(value, sums, row, column)

    def _first_sums(self, is_first: str, rows: list[str], column: str, sums: Buffer) -> list[str]:
        """What a step's products are added to: zeros, or the sums so far."""
        e = self._emitter
        types = ", ".join([self._vector] * len(rows))
        result = e.name()
        e.open(f"{result}:{len(rows)} = scf.if {is_first} -> ({types}) {{")
        zero = e.value(f"arith.constant dense<{self._zero_text()}> : {self._vector}")
        e.line(f"scf.yield {', '.join([zero] * len(rows))} : {types}")
        e.otherwise()
        loaded = [self._load_vector(sums, row, column) for row in rows]
        e.line(f"scf.yield {', '.join(loaded)} : {types}")
        e.close()
        return [f"{result}#{i}" for i in range(len(rows))]

    def _add_products(
        self,
        part: tuple[str, str],
        unrolled: int,
        rows: list[str],
        begin: list[str],
        a: Buffer,
        b: Buffer,
    ) -> list[str]:
        """The loop along a part of K, some of it in a turn."""
        e = self._emitter
        result, sums = e.name(), [e.name() for _ in rows]
        carried = ", ".join(f"{one} = {value}" for one, value in zip(sums, begin, strict=True))
        types = ", ".join([self._vector] * len(rows))
        first, (start, end), by = e.name(), part, self._number(unrolled)
        e.open(
            f"{result}:{len(rows)} = scf.for {first} = {start} to {end} step {by} "
            f"iter_args({carried}) -> ({types}) {{"
        )
        for number in range(unrolled):
            k = self._op("addi", first, self._number(number)) if number else first
            sums = self._add_row(k, rows, sums, a, b)
        e.line(f"scf.yield {', '.join(sums)} : {types}")
        e.close()
        return [f"{result}#{i}" for i in range(len(rows))]

    def _add_row(self, k: str, rows: list[str], sums: list[str], a: Buffer, b: Buffer) -> list[str]:
        """A vector of B, times an element of each row of A, added."""
        vector = self._load_vector(b, k, self._number(0))
        found = []
        for row, value in zip(rows, sums, strict=True):
            factor = self._load(a, *((k, row) if self._problem.a.transposed else (row, k)))
            spread = self._emitter.value(
                f"vector.broadcast {factor} : {self._type} to {self._vector}"
            )
            found.append(self._add(value, self._times(spread, vector), self._vector))
        return found

    # ---------------------------------------------------------------------------------------------
    # Writing C

    def _write(self, tile: Tile, sums: Buffer) -> None:
        """The rows and columns of the tile's sums that are C's."""
        c = self._given("%c", self._problem.c)
        with self._loop(self._number(0), tile.rows) as i:
            row = self._op("addi", tile.row, i)
            whole = self._number(0)
            if self._finish is None:
                rest = self._op("remsi", tile.columns, self._number(self._columns))
                whole = self._op("subi", tile.columns, rest)
                with self._loop(self._number(0), whole, self._columns) as j:
                    column = self._op("addi", tile.column, j)
                    total = self._total(sums, (i, j), c, (row, column), self._columns)
                    result = self._narrow(total, c.element, self._columns)
                    self._store_vector(result, c, row, column)
            with self._loop(whole, tile.columns) as j:
                column = self._op("addi", tile.column, j)
                total = self._total(sums, (i, j), c, (row, column))
                self._store(self._finished(total, row, column), c, row, column)

    def _total(
        self,
        sums: Buffer,
        place: tuple[str, str],
        c: Buffer,
        c_place: tuple[str, str],
        width: int | None = None,
    ) -> str:
        """The sum, or a vector of `width` of them, and what C has if that is to be added."""
        load = self._load if width is None else self._load_vector
        total = load(sums, *place)
        if not self._problem.adds:
            return total
        before = self._convert(load(c, *c_place), c.element, width)
        return self._add(before, total, self._of(self._type, width))

    def _narrow(self, total: str, element: str, width: int | None = None) -> str:
        """A total, rounded to the accumulator's type, as an element of another type."""
        accumulator = self._problem.accumulator
        rounded = self._convert(total, self._type, width, target=accumulator)
        return self._convert(rounded, accumulator, width, target=element)

    def _finished(self, total: str, row: str, column: str) -> str:
        if self._finish is None:
            return self._narrow(total, self._problem.c.element)
        value = self._convert(total, self._type, target=self._problem.accumulator)
        batch = "%bz" if self._problem.batched else None
        [result] = self._finish(self._emitter, [value], Place(batch, row, [column]))
        return result


class CpuBlocked(MatmulFamily):
    """See the module's docstring."""

    name = "blocks"
    target = CPU
    variant_type = Variant
    has_cost_model = False

    def can_take(self, problem: Problem, variant: Variant) -> bool:
        """All sizes, pitches and transpositions are handled: types alone matter."""
        elements = {problem.a.element, problem.b.element, problem.c.element, problem.accumulator}
        shape_fits = variant.tile_rows % (4 * variant.rows) == 0 and (
            variant.tile_columns % (4 * _columns(problem, variant)) == 0
        )
        return shape_fits and (elements <= set(_FLOATS) or elements <= set(_INTEGERS))

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        """The first one fits a second-level cache of 512 KiB."""
        part = 2 if computed_in(problem) == "f64" else 1
        found = [
            Variant(tile_rows=rows // part, tile_columns=columns // part, depth=depth)
            for rows, columns, depth in ((192, 256, 256), (96, 512, 384))
        ]
        return tuple(variant for variant in found if self.can_take(problem, variant))

    def function(
        self, problem: Problem, variant: Variant, name: str, finish: Finish | None = None
    ) -> str:
        return Kernel(problem, variant, finish).function(name)


CPU_BLOCKED = CpuBlocked()
