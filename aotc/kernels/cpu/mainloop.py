"""The matmul mainloop of one core, whose operands and accumulators are in the core's caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from aotc.builder import Buffer
from aotc.builder.numbers import Condition, Number, Scalar, Value, compare, signed_minimum
from aotc.kernels.cpu.levels import AVX512, SSE2, has_level, is_for_level
from aotc.kernels.cpu.vectors import Vectors

# The register tile (rows, vectors of columns) where a register holds a whole vector (AVX-512). One
# load of an element of A serves all vectors of columns.
LONG_ROWS, LONG_VECTORS = 8, 3
# The unroll factor of the loop along K with shorter registers.
_UNROLLED = 2
# The rows of the register tile with SSE2, which has 16 registers of 16 bytes: with more rows, the
# accumulators are spilled.
_SSE2_ROWS = 2
# `multiply_columns`: the largest number of rows at a time, and of rows times columns.
_ROWS_OF_COLUMN, _DOT_PRODUCTS = 4, 16
# The mainloop may store up to this many rows of accumulators past C's last row.
ROWS_BEHIND = LONG_ROWS - 1


class Row(Protocol):
    """Loads from a row of A: the element at `k`, or the vector of `width` elements from `k` on."""

    def __call__(self, k: Number, width: int = 1) -> Value: ...


class Operands(Protocol):
    """Access to A and B, whatever their storage."""

    def row_of_a(self, v: Vectors, row: Number) -> Row:
        """Access to a row. It is called before the loop along K."""
        ...

    def vector_of_b(self, v: Vectors, column: Number, k: Number) -> Value:
        """Loads row `k` of the vector of columns that begins at `column`."""
        ...


class Factors(Struct, frozen=True):
    """A and B in buffers. `a` is indexed by (row, k), or by (k, row) with `is_a_transposed`. `b` is
    indexed by (group of columns, k, column in the group) with `has_b_groups`, else by (k,
    column)."""

    a: Buffer
    b: Buffer
    is_a_transposed: bool = False
    has_b_groups: bool = True

    def row_of_a(self, v: Vectors, row: Number) -> Row:
        def load(k: Number, width: int = 1) -> Value:
            return v.load(self.a, [k, row] if self.is_a_transposed else [row, k], width)

        return load

    def vector_of_b(self, v: Vectors, column: Number, k: Number) -> Value:
        at = [v.signed("divsi", column, v.width), k, 0] if self.has_b_groups else [k, column]
        return v.load(self.b, at, v.width)


class Finish(Struct, frozen=True):
    """The epilogue of the mainloop. It stores accumulators from registers after the last step along
    K, for which `is_last` holds. All numbers of rows are multiples of `rows_divisor`."""

    is_last: Condition
    rows_divisor: int
    # Stores a vector of accumulators, given its row and its first column.
    store: Callable[[Value, Number, Number], None]
    # Prefetches the data that `store` reads for a vector, given its row and its first column: the
    # computation of a vector's accumulators takes as long as the access to memory.
    prefetch: Callable[[Number, Number], None]


class Mainloop:
    """C += A · B, by register tiles of a group of rows and some vectors of columns. The columns of
    B and C are padded to whole vectors. C has `ROWS_BEHIND` more rows, whose contents are
    unspecified afterwards.

    The accumulators of a tile stay in registers; for each k, elements of A are broadcast and
    multiplied with vectors of B. A tile has `rows` rows and one vector of columns. With AVX-512, it
    has `LONG_ROWS` rows and `long_vectors` vectors.
    """

    def __init__(
        self,
        v: Vectors,
        rows: int,
        operands: Operands,
        c: Buffer,
        long_vectors: int = LONG_VECTORS,
    ) -> None:
        self.v, self.b, self.rows, self.operands, self.c = v, v.b, rows, operands, c
        self.long_vectors = long_vectors

    def multiply(
        self,
        rows: Number,
        columns: Number,
        k: Number,
        is_first: Condition,
        *,
        start: Number = 0,
        finish: Finish | None = None,
        prefetch_b: Callable[[Number, Number], None] | None = None,
    ) -> None:
        """Adds A · B to C, for the first `rows` rows, the columns from `start` up to `columns`, and
        the first `k` elements along K. If `is_first` holds, C's previous values are taken as 0.
        The order of the additions to an element of C does not depend on the register size. With
        `finish`, the accumulators of the last step are not stored to C, but passed to
        `finish.store`. `prefetch_b` prefetches a vector of B, given its column, which may be past
        the last one, and its k."""
        part = _Part(rows, start, columns, k, is_first, finish, prefetch_b)
        b = self.b
        with b.where(has_level(b, AVX512)) as is_long:
            self._multiply_part(part, LONG_ROWS, self.long_vectors, 1)
        with is_long.otherwise():
            with b.where(is_for_level(b, SSE2)) as is_short:
                self._multiply_part(part, _SSE2_ROWS, 1, 1)
            with is_short.otherwise():
                self._multiply_part(part, self.rows, 1, _UNROLLED)

    def multiply_columns(
        self,
        part: tuple[Number, Number],
        columns: tuple[Number, Number, int],
        of_b: Buffer,
        first: Condition,
    ) -> None:
        """Adds A · B to C for a few columns, by dot products along K. `part` is the number of rows
        and of elements along K, `columns` is the first column, the number of columns, and the
        number of those that may be computed: with AVX-512, all of them are. If `first` holds, C's
        previous values are taken as 0. `of_b` is indexed by (column - first column, k). A's rows
        are contiguous along K. The order of the additions differs from `multiply`: an element of C
        has a partial sum for each element of a vector."""
        b, (start, count, most) = self.b, columns
        if most == 1:
            self._multiply_columns(part, start, [0], of_b, first)
            return
        with b.where(has_level(b, AVX512)) as branch:
            self._multiply_columns(part, start, range(most), of_b, first)
        with branch.otherwise(), b.loop(0, count) as column:
            self._multiply_columns(part, start, [column.index], of_b, first)

    def _multiply_columns(
        self,
        part: tuple[Number, Number],
        start: Number,
        columns: Sequence[Number],
        of_b: Buffer,
        is_first: Condition,
    ) -> None:
        """See `multiply_columns`. All of `columns` and some rows are computed at a time."""
        b, v, (rows, k) = self.b, self.v, part
        whole = v.whole(k, v.width)
        count = min(_ROWS_OF_COLUMN, _DOT_PRODUCTS // len(columns))
        with b.loop(0, rows, count) as group:
            numbers = [group.index + i for i in range(count)]
            found = [self.operands.row_of_a(v, signed_minimum(row, rows - 1)) for row in numbers]
            places = [[row, start + column] for row in numbers for column in columns]
            zeros = [b.zero(v.vector_type)] * len(places)
            vectors = self._dot(found, columns, of_b, (0, whole, v.width), zeros)
            totals = [v.total(vector) for vector in vectors]
            totals = self._dot(found, columns, of_b, (whole, k, 1), totals)
            before = b.choose(
                is_first,
                [v.type] * len(places),
                lambda: [b.zero(v.type)] * len(places),
                lambda: [v.load(self.c, at) for at in places],
            )
            for at, one, total in zip(places, before, totals, strict=True):
                v.store(b.add(one, total), self.c, at)

    def _dot(
        self,
        rows: Sequence[Row],
        columns: Sequence[Number],
        of_b: Buffer,
        part: tuple[Number, Number, int],
        accumulators: Sequence[Value],
    ) -> list[Value]:
        """The accumulators plus the products of each row of A and each column of B. `part` is a
        range of K, as the bounds and the step of a loop."""
        b, v, width = self.b, self.v, part[-1]
        with b.loop(*part, accumulators) as loop:
            factors = [v.load(of_b, [column, loop.index], width) for column in columns]
            products = []
            for row in rows:
                element = row(loop.index, width)
                products += [b.multiply(element, factor) for factor in factors]
            loop.next([b.add(*pair) for pair in zip(loop.carried, products, strict=True)])
        return loop.results

    def _multiply_part(self, part: _Part, rows: int, vectors: int, unrolled: int) -> None:
        """Computes tiles of `rows` rows and `vectors` vectors of columns. The vectors that remain
        are computed one at a time."""
        b, v = self.b, self.v
        count = v.groups(part.stop - part.start, v.width)
        whole = v.whole(count, vectors)
        bounds = [(0, whole, vectors), (whole, count, 1)] if vectors > 1 else [(0, count, 1)]
        for first, last, each in bounds:
            with b.loop(first, last, each) as group, b.loop(0, part.rows, rows) as row:
                column = part.start + group.index * v.width
                columns = [column + i * v.width for i in range(each)]
                self._multiply_group(part, (row.index, rows), columns, unrolled)

    def _multiply_group(
        self, part: _Part, group: tuple[Scalar, int], columns: Sequence[Number], unrolled: int
    ) -> None:
        """Computes one tile: a group of rows (the first one, and their number) and some vectors of
        columns. Rows past the last one read the last row of A again."""
        b, v = self.b, self.v
        rows = [group[0] + i for i in range(group[1])]
        places = [[row, column] for row in rows for column in columns]
        accumulators = b.choose(
            part.is_first,
            [v.vector_type] * len(places),
            lambda: [b.zero(v.vector_type)] * len(places),
            lambda: [v.load(self.c, at, v.width) for at in places],
        )
        existing = [signed_minimum(row, part.rows - 1) for row in rows]
        accumulators = list(self.corrected(existing, columns, accumulators))
        elements = [self.operands.row_of_a(v, row) for row in existing]
        if part.finish is not None:
            with b.where(part.finish.is_last):
                for row in existing:
                    for column in columns:
                        part.finish.prefetch(row, column)
        prefetch_b = part.prefetch_b
        if prefetch_b is not None:
            # Each group of rows prefetches another vector of the columns that follow.
            ahead = columns[-1] + (v.signed("divsi", group[0], group[1]) + 1) * v.width
        whole = v.whole(part.k, unrolled)
        bounds = [(0, whole, unrolled), (whole, part.k, 1)] if unrolled > 1 else [(0, part.k, 1)]
        for start, stop, each in bounds:
            with b.loop(start, stop, each, accumulators) as loop:
                found = loop.carried
                for i in range(each):
                    if prefetch_b is not None:
                        prefetch_b(ahead, loop.index + i)
                    found = self._mma(elements, columns, loop.index + i, found)
                loop.next(found)
            accumulators = loop.results
        self._store(part, rows, columns, accumulators)

    def _store(
        self,
        part: _Part,
        rows: Sequence[Scalar],
        columns: Sequence[Number],
        accumulators: Sequence[Value],
    ) -> None:
        """Stores the accumulators of a tile, row by row. C has space for rows past the last one."""
        b, v, count, finish = self.b, self.v, len(columns), part.finish
        of_rows = [accumulators[i * count : (i + 1) * count] for i in range(len(rows))]

        def store_in_c() -> None:
            for row, vectors in zip(rows, of_rows, strict=True):
                for column, vector in zip(columns, vectors, strict=True):
                    v.store(vector, self.c, [row, column])

        if finish is None:
            store_in_c()
            return
        with b.where(finish.is_last) as branch:
            for row, vectors in zip(rows, of_rows, strict=True):
                is_there = finish.rows_divisor % len(rows) == 0 or compare("slt", row, part.rows)
                with b.where(is_there):
                    for column, vector in zip(columns, vectors, strict=True):
                        finish.store(vector, row, column)
        if finish.is_last is not True:
            with branch.otherwise():
                store_in_c()

    def _mma(
        self,
        rows: Sequence[Row],
        columns: Sequence[Number],
        k: Number,
        accumulators: Sequence[Value],
    ) -> list[Value]:
        """One step along K of a tile: the accumulators plus the element of each row of A times each
        vector of columns of B."""
        vectors = [self.operands.vector_of_b(self.v, column, k) for column in columns]
        found = []
        for number, row in enumerate(rows):
            factor = self.factor(row(k))
            before = accumulators[number * len(vectors) : (number + 1) * len(vectors)]
            for vector, accumulator in zip(vectors, before, strict=True):
                found.append(self.add_products(accumulator, factor, vector))
        return found

    def corrected(
        self, rows: Sequence[Number], columns: Sequence[Number], accumulators: Sequence[Value]
    ) -> Sequence[Value]:
        """The accumulators of these rows and vectors of columns, before products are added."""
        return accumulators

    def factor(self, element: Value) -> Value:
        """An element of A in the form in which it is multiplied with a vector."""
        return self.v.broadcast(element)

    def add_products(self, sums: Value, factor: Value, vector: Value) -> Value:
        return self.b.add(sums, self.b.multiply(factor, vector))


class _Part(Struct, frozen=True):
    """The extents of a call of `Mainloop.multiply`: the number of rows, the columns from `start` up
    to `stop`, and the number of elements along K. The other fields are its arguments."""

    rows: Number
    start: Number
    stop: Number
    k: Number
    is_first: Condition
    finish: Finish | None
    prefetch_b: Callable[[Number, Number], None] | None
