"""Gathered contractions on the ordinary units: the kernel of `simt`, with addresses of its own.

Elements come one by one where they do not follow each other. Where an element's depth has moved it
to is looked up in shared memory: each block first makes a table of its part of K. Where C has too
few tiles for a GPU, K is made in parts, whose sums a second kernel adds in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from math import prod

from msgspec.structs import replace

from aotc.chips import H100, KIB
from aotc.kernels.family import ANY_GPU
from aotc.kernels.indices import Index
from aotc.kernels.matmul.implicit_gemm.family import ImplicitGemmFamily
from aotc.kernels.matmul.implicit_gemm.problem import (
    Digit,
    Gathered,
    Operand,
    count_of,
    likely_count,
    offset,
)
from aotc.kernels.matmul.implicit_gemm.split_k import (
    clocks_of_parts,
    depth_of_part,
    table_length,
)
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Finish, Matrix, Place, Problem, convert
from aotc.kernels.matmul.scalar import Operands, has_known_types, sum_type
from aotc.kernels.matmul.simt import kernel as simt_kernel
from aotc.kernels.matmul.simt import tiles as simt_tiles
from aotc.kernels.matmul.simt.family import SIMT
from aotc.kernels.matmul.simt.tiles import Side
from aotc.kernels.writer import Buffer, Writer

_SHARED_BYTES = 160 * KIB
_TABLE_ENTRY = "i32"
_TABLE_ENTRY_BYTES = 4
_SUMMING_THREADS = 128
_LEAST_DEPTH = 16  # of a part of K


class Variant(simt_tiles.Variant, frozen=True, kw_only=True):
    """`splits`: how many parts K is made in."""

    splits: int = 1


# Of a multiprocessor: multiply-adds of f32 in a clock; how many of them there are, by how many
# elements a thread makes, against those that fetch; clocks until the first tile is there.
_MULTIPLY_ADDS = 128
_OVERHEAD = 24
_START_CLOCKS = 3000
_THREADS_TO_BE_BUSY = 256


def _sides(
    problem: Gathered, variant: simt_tiles.Variant
) -> tuple[simt_tiles.Side, simt_tiles.Side]:
    def side(matrix: Matrix, extent: int | None, tile: int, is_turned: bool) -> Side:
        width = 1
        bytes_ = ELEMENT_BYTES[matrix.element]
        if variant.copy_bytes and not is_turned:
            width = max(1, min(variant.copy_bytes, matrix.alignment) // bytes_)
        return Side(matrix, extent, problem.k, tile, is_turned, width)

    return (
        side(problem.a, problem.m, variant.m, not problem.a.transposed),
        side(problem.b, problem.n, variant.n, problem.b.transposed),
    )


def _tile_bytes(problem: Gathered, variant: Variant) -> int:
    element = sum_type(problem)
    shapes = [side.shape(variant, element) for side in _sides(problem, variant)]
    return sum(map(prod, shapes)) * ELEMENT_BYTES[element]


class _Sizes(Operands):
    """Of the matrices. Where elements are is known elsewhere."""

    def __init__(self, w: Writer, problem: Gathered) -> None:
        self.problem = problem
        self.m = count_of(w, problem, problem.rows)
        self.n = count_of(w, problem, problem.columns)
        self.k = count_of(w, problem, problem.depth)
        self.batches = count_of(w, problem, problem.batch)


class _Launches:
    """The host's part, and the kernel that adds sums of parts of K."""

    def __init__(
        self, w: Writer, problem: Gathered, variant: Variant, finish: Finish | None
    ) -> None:
        self.w, self.problem, self.variant, self.finish = w, problem, variant, finish
        self.a, self.b, self.c = (Operand(w, problem, name) for name in "abc")
        self.sizes = _Sizes(w, problem)
        self.type = sum_type(problem)

    def write(self) -> None:
        w, v, sizes = self.w, self.variant, self.sizes
        tiles_m, tiles_n = w.divide_up(sizes.m, v.m), w.divide_up(sizes.n, v.n)
        blocks = w.multiply(w.multiply(tiles_m, tiles_n), w.multiply(sizes.batches, v.splits))
        sums = self._make_sums() if v.splits > 1 else None
        kernel = _Kernel(self, sums)
        shared = IMPLICIT_SIMT.shared_bytes(self.problem, v)
        w.launch(blocks, v.threads, shared, partial(kernel.body, tiles_m, tiles_n))
        if sums:
            elements = w.multiply(w.multiply(sizes.m, sizes.n), sizes.batches)
            blocks = w.divide_up(elements, _SUMMING_THREADS)
            w.launch(blocks, _SUMMING_THREADS, 0, partial(self._add_parts, elements, sums))
            w.line(f"memref.dealloc {sums.name} : {sums.type}")
        w.line("return")

    def _make_sums(self) -> Buffer:
        """For each part of K, each batch, a matrix like C, its rows behind each other."""
        w, s = self.w, self.sizes
        count = w.multiply(w.multiply(s.m, s.n), w.multiply(s.batches, self.variant.splits))
        type_ = f"memref<?x{self.type}>"
        name = w.value(f"memref.alloc({w.index(count)}) : {type_}")
        return Buffer(name, type_, self.type)

    def _add_parts(self, elements: Index, sums: Buffer) -> None:
        w, s = self.w, self.sizes
        number = w.add(w.multiply("%block", _SUMMING_THREADS), "%thread")

        def add() -> None:
            values = [
                value
                for part in range(self.variant.splits)
                for value in w.load(sums, [w.add(number, w.multiply(elements, part))])
            ]
            total = values[0]
            for value in values[1:]:
                total = w.sum(total, value, self.type)
            batch, place = w.unravel(number, w.multiply(s.m, s.n))
            row, column = w.unravel(place, s.n)
            at = w.add(self.place(batch), w.add(self.row(row), self.column(column)))
            self.store(at, row, column, [total])

        w.where(w.less(number, elements), add)

    # --- C ------------------------------------------------------------------------------------

    def place(self, batch: Index) -> Index:
        return offset(self.w, batch, self.c.batch)

    def row(self, row: Index) -> Index:
        return offset(self.w, row, self.c.rows)

    def column(self, column: Index) -> Index:
        return offset(self.w, column, self.c.columns)

    def store(self, at: Index, row: Index, column: Index, sums: Sequence[str]) -> None:
        """Stores what becomes of neighbouring sums."""
        w, problem = self.w, self.problem
        element = problem.c.element
        olds = w.load(self.c.buffer, [at], len(sums)) if problem.adds else None
        values: list[str] = []
        for number, total in enumerate(sums):
            if olds:
                old = convert(w, olds[number], element, self.type)
                total = w.sum(old, total, self.type)
            total = convert(w, total, self.type, problem.accumulator)
            if self.finish:
                place = Place(None, w.index(row), [w.index(w.add(column, number))])
                values += self.finish(w, [total], place)
            else:
                values.append(convert(w, total, problem.accumulator, element))
        w.store(self.c.buffer, [at], values)


class _Kernel(simt_kernel.Kernel):
    """`sums`: where sums of parts of K go, if there are parts."""

    def __init__(self, launches: _Launches, sums: Buffer | None) -> None:
        self.host, self.sums = launches, sums
        self.problem, self.variant = launches.problem, launches.variant
        self.writer, self.operands = launches.w, copy(launches.sizes)
        self.type = launches.type
        self.group = 16 // ELEMENT_BYTES[self.type]
        self.gathered = launches.problem
        self.split_variant = launches.variant
        self.sides = _sides(launches.problem, launches.variant)
        self.given = (launches.a, launches.b)
        self.buffers = (launches.a.buffer, launches.b.buffer)
        self.first_k, self.last_k = 0, self.operands.k

    def body(self, tiles_m: Index, tiles_n: Index) -> None:
        w, v = self.writer, self.split_variant
        self.batch, self.part_number, tile = w.unravel(
            "%block", v.splits, w.multiply(tiles_m, tiles_n)
        )
        tile_m, tile_n = self._tile(tile, tiles_m, tiles_n)
        self.first = (w.multiply(tile_m, v.m), w.multiply(tile_n, v.n))
        if v.splits > 1:
            depth = depth_of_part(self.problem, v)
            self.first_k = w.multiply(self.part_number, depth)
            self.last_k = w.minimum(w.add(self.first_k, depth), self.host.sizes.k)
            self.operands.k = self.last_k
        self.tiles = self._make_tiles()
        self.tables = self._make_tables()
        extents = (self.operands.m, self.operands.n)
        self.pieces, self.offsets = [], []
        for number, (side, first, extent) in enumerate(
            zip(self.sides, self.first, extents, strict=True)
        ):
            given = self.given[number]
            along = (given.rows, given.columns)[number]
            base = offset(w, self.batch, given.batch)
            pieces = list(self._places(side, first, extent))
            self.pieces.append(pieces)
            self.offsets.append(
                {
                    id(piece): w.add(base, offset(w, w.add(first, piece.place), along))
                    for piece in pieces
                }
            )
        self.rows, self.columns = self._part()
        self._store(self._multiply())

    # --- Where elements are -------------------------------------------------------------------

    def _make_tables(self) -> list[Buffer | None]:
        """For each side where its depth leads to, if that is no plain distance."""
        w, length = self.writer, table_length(self.problem, self.split_variant)
        begin = _tile_bytes(self.gathered, self.split_variant)
        tables: list[Buffer | None] = []
        for given in self.given:
            if len(given.depth) < 2:
                tables.append(None)
                continue
            table = w.shared(begin, [length], _TABLE_ENTRY)
            begin += length * _TABLE_ENTRY_BYTES
            self._fill(table, length, given.depth)
            tables.append(table)
        if begin > _tile_bytes(self.gathered, self.split_variant):
            w.barrier()
        return tables

    def _fill(self, table: Buffer, length: int, digits: Sequence[Digit]) -> None:
        w = self.writer

        def turn(number: str, _: list[str]) -> Sequence[str]:
            # Behind K, there is nothing to look up: some offset.
            k = w.minimum(w.add(self.first_k, number), w.subtract(self.host.sizes.k, 1))
            entry = w.value(
                f"arith.index_cast {w.index(offset(w, k, digits))} : index to {_TABLE_ENTRY}"
            )
            w.store(table, [number], [entry])
            return []

        w.loop("%thread", length, self.variant.threads, [], [], turn)

    def _source(self, side: int, k0: Index, piece: simt_kernel.Piece) -> list[Index]:
        w, table, digits = self.writer, self.tables[side], self.given[side].depth
        k = w.add(k0, piece.depth)
        if table:
            [found] = w.load(table, [w.subtract(k, self.first_k)])
            moved: Index = w.value(f"arith.index_cast {found} : {_TABLE_ENTRY} to index")
        else:
            moved = offset(w, k, digits)
        return [w.add(self.offsets[side][id(piece)], moved)]

    # --- To memory ----------------------------------------------------------------------------

    def _store(self, sums: Sequence[str]) -> None:
        w, across, group = self.writer, self.variant.thread_n, self.group
        columns = [w.add(self.first[1], first) for first in self.columns]
        places = [self._column(column) for column in columns]
        base = self._base()
        for number, first in enumerate(self.rows):
            for i in range(group):
                begin = (number * group + i) * across
                row = w.add(self.first[0], w.add(first, i))
                is_there = None if self.sides[0].is_whole else w.less(row, self.operands.m)
                parts = [sums[begin + j : begin + j + group] for j in range(0, across, group)]
                w.where(is_there, partial(self._store_pieces, row, base, columns, places, parts))

    def _base(self) -> Index:
        """Where the block's matrix begins."""
        if not self.sums:
            return self.host.place(self.batch)
        w, s = self.writer, self.host.sizes
        number = w.add(w.multiply(self.part_number, s.batches), self.batch)
        return w.multiply(number, w.multiply(s.m, s.n))

    def _column(self, column: Index) -> Index:
        return column if self.sums else self.host.column(column)

    def _store_pieces(
        self,
        row: Index,
        base: Index,
        columns: Sequence[Index],
        places: Sequence[Index],
        sums: Sequence[Sequence[str]],
    ) -> None:
        w, s = self.writer, self.host.sizes
        start = w.multiply(row, s.n) if self.sums else self.host.row(row)
        start = w.add(base, start)
        for column, place, values in zip(columns, places, sums, strict=True):
            if self._has_groups():
                is_there = None if self.sides[1].is_whole else w.less(column, s.n)
                at = w.add(start, place)
                w.where(is_there, partial(self._store_some, at, row, column, values))
                continue
            for number, value in enumerate(values):
                own = w.add(column, number)
                is_there = None if self.sides[1].is_whole else w.less(own, s.n)
                w.where(is_there, partial(self._store_alone, start, row, own, value))

    def _has_groups(self) -> bool:
        """Whether neighbours of C, or of a part's sums, are so in memory, at whole multiples."""
        group, last = self.group, self.host.c.columns[-1]
        if not isinstance(last.size, int) or last.size % group:
            return False
        bytes_ = group * ELEMENT_BYTES[self.problem.c.element]
        is_aligned = last.step == 1 and self.problem.c.alignment % bytes_ == 0
        return self.sums is not None or is_aligned

    def _store_alone(self, start: Index, row: Index, column: Index, value: str) -> None:
        at = self.writer.add(start, self._column(column))
        self._store_some(at, row, column, [value])

    def _store_some(self, at: Index, row: Index, column: Index, values: Sequence[str]) -> None:
        if self.sums:
            self.writer.store(self.sums, [at], values)
        else:
            self.host.store(at, row, column, values)


class ImplicitSimt(ImplicitGemmFamily):
    """See the module's docstring."""

    name = "gathered multiply-adds"
    target = ANY_GPU
    variant_type = Variant

    def can_take(self, problem: Problem, variant: Variant) -> bool:
        if not isinstance(problem, Gathered) or not has_known_types(problem):
            return False
        element = sum_type(problem)
        if problem.k is None:
            return False  # shared memory has a table of it
        plain = Matrix("", element, (None, None), None, ELEMENT_BYTES[element])
        one_by_one = Problem(plain, plain, plain, problem.accumulator)
        narrow = 0 if variant.copy_bytes == 0 else ELEMENT_BYTES[element]
        if not SIMT.can_take(one_by_one, replace(variant, copy_bytes=narrow)):
            return False
        if variant.copy_bytes and {problem.a.element, problem.b.element} != {element}:
            return False
        sides = _sides(problem, variant)
        return (
            all(side.tile * variant.k // side.width % variant.threads == 0 for side in sides)
            and self.shared_bytes(problem, variant) <= _SHARED_BYTES
            and (variant.splits == 1 or depth_of_part(problem, variant) >= _LEAST_DEPTH)
        )

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        if not isinstance(problem, Gathered) or not has_known_types(problem):
            return ()
        element = sum_type(problem)
        is_async = problem.a.element == problem.b.element == element and ELEMENT_BYTES[element] >= 4
        copying = (3, 16) if is_async else (2, 0)
        sizes = (
            *(((128, 128, 8), (64, 32, 8, 8)), ((128, 64, 8), (64, 32, 8, 8))),
            *(((64, 128, 8), (64, 32, 8, 8)), ((64, 64, 16), (32, 32, 8, 4))),
            *(((64, 64, 8), (64, 32, 8, 8)), ((32, 64, 16), (32, 16, 4, 4))),
            *(((64, 32, 16), (32, 16, 4, 4)), ((32, 32, 16), (32, 16, 4, 4))),
        )
        found = [
            Variant(*tile, *part, *copying, splits=splits)
            for tile, part in sizes
            for splits in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
        ]
        return tuple(variant for variant in found if self.can_take(problem, variant))

    def gathered_clocks(self, problem: Gathered, variant: Variant) -> float:
        m, n, k = (likely_count(one) for one in (problem.rows, problem.columns, problem.depth))
        batches = likely_count(problem.batch)
        tiles = batches * -(-m // variant.m) * -(-n // variant.n) * variant.splits
        each = variant.thread_m * variant.thread_n
        part = each / (each + _OVERHEAD)
        depth = -(-k // variant.splits)
        at_once = max(1, _THREADS_TO_BE_BUSY // variant.threads)
        rounds = -(-tiles // (H100.multiprocessors * at_once))
        # Few threads do not keep a multiprocessor busy.
        alone = min(1.0, variant.threads * min(at_once, -(-tiles // H100.multiprocessors)) / 256)
        together = min(at_once, -(-tiles // H100.multiprocessors))
        busy = depth * variant.m * variant.n * together / _MULTIPLY_ADDS / part / alone
        total = rounds * busy + _START_CLOCKS
        return total + clocks_of_parts(problem, variant.splits)

    def shared_bytes(self, problem: Problem, variant: Variant) -> int:
        assert isinstance(problem, Gathered)
        tables = 2 * table_length(problem, variant) * _TABLE_ENTRY_BYTES
        return _tile_bytes(problem, variant) + tables

    def function(
        self, problem: Problem, variant: Variant, name: str, finish: Finish | None = None
    ) -> str:
        assert isinstance(problem, Gathered)
        w = Writer()
        _Launches(w, problem, variant, finish).write()
        return f"func.func @{name}({problem.signature}) {{\n{w.text()}\n}}\n"


IMPLICIT_SIMT = ImplicitSimt()
