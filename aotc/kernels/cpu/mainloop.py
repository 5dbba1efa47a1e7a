"""The mainloop of a product of matrices whose factors and accumulators are in a core's caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from aotc.builder import Buffer
from aotc.kernels.cpu.levels import AVX512, SSE2, has_level, is_for_level
from aotc.kernels.cpu.vectors import Vectors
from aotc.numbers import Condition, Number, Scalar, Value, compare, signed_minimum

# With vector registers as long as a vector of columns (AVX-512), a group has as many rows, and the
# mainloop computes as many vectors of columns at a time: an element of A is loaded for all of them.
LONG_ROWS, LONG_VECTORS = 8, 3
# How many k an iteration takes otherwise.
_UNROLLED = 2
# SSE2 has 16 registers of 4 elements: the accumulators of more rows are in memory.
_SSE2_ROWS = 2
# How many rows are multiplied with columns at a time, and how many rows times columns at most.
_ROWS_OF_COLUMN, _DOT_PRODUCTS = 4, 16
# The mainloop stores up to so many rows of accumulators behind the last one.
ROWS_BEHIND = LONG_ROWS - 1


class Row(Protocol):
    """The elements of a row of A along K: one, or a vector of `width`."""

    def __call__(self, k: Number, width: int = 1) -> Value: ...


class Operands(Protocol):
    """A and B, wherever they are."""

    def row_of_a(self, v: Vectors, row: Number) -> Row:
        """Finds a row, before the loop along K."""
        ...

    def vector_of_b(self, v: Vectors, column: Number, k: Number) -> Value:
        """The vector of columns that begins at `column`."""
        ...


class Factors(Struct, frozen=True):
    """A and B in buffers. `a` is indexed by row and k, or the other way round; `b` by the group of
    columns, k, and the column in the group, or by k and the column."""

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
    """Stores accumulators that are in registers, in the step along K for which `is_last` holds.
    All counts of rows are multiples of `rows_divisor`."""

    is_last: Condition
    rows_divisor: int
    # Takes a vector of accumulators, its row and its first column.
    store: Callable[[Value, Number, Number], None]
    # Prefetches what `store` reads for a vector, by its row and its first column: a vector's
    # accumulators take as long as memory does.
    prefetch: Callable[[Number, Number], None]


class Mainloop:
    """C += A · B, by groups of rows and vectors of columns. B and C have whole vectors, and C has
    `ROWS_BEHIND` rows behind the last one, which become anything.

    It keeps the accumulators of a group of rows and some vectors of columns in registers, and for
    each k multiplies elements of A with vectors of B. With short registers, a group has `rows`;
    with long ones, `long_vectors` vectors of columns are multiplied at a time.
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
        """Adds the products of the first rows and k, and of the columns from `start` up to
        `columns`, to C, which is 0 before if `is_first`. The products of an element of C are added
        in the same order for all sizes of registers. With `finish`, the sums of the last step are
        not in C, but where it stores them. `prefetch_b` prefetches a vector of B, by its column,
        which may be behind the last one, and its k."""
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
        columns: tuple[Number, int],
        of_b: Buffer,
        first: Condition,
    ) -> None:
        """Adds the products of the first rows and k, which `part` counts, and of some columns (the
        first one, and how many) to C, which is 0 before if `first`. `of_b` is indexed by the column
        among these, and k. A's rows are contiguous along K. The products of an element of C are
        added in an order of their own: in as many sums as a vector has elements."""
        b, (start, count) = self.b, columns
        if count == 1:
            self._multiply_columns(part, start, [0], of_b, first)
            return
        with b.where(has_level(b, AVX512)) as branch:
            self._multiply_columns(part, start, range(count), of_b, first)
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
        """Takes all these columns at a time, and some rows."""
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
        """The accumulators plus the products of each row of A and each column of B, in a part of K:
        the bounds and the step of a loop."""
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
        """Takes so many vectors of columns at a time, and one where fewer are left."""
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
        """Adds the products of a group of rows (its first one, and how many it has) and of some
        vectors of columns. A group that has fewer rows repeats the last one."""
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
        elements = [self.operands.row_of_a(v, row) for row in existing]
        if part.finish is not None:
            with b.where(part.finish.is_last):
                for row in existing:
                    for column in columns:
                        part.finish.prefetch(row, column)
        prefetch_b = part.prefetch_b
        if prefetch_b is not None:
            # A vector for each group of rows: all of them prefetch the next columns.
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
        """Stores the accumulators of a group of rows, row by row. In C, there is place for rows
        behind the last one."""
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
        """The accumulators of some rows, plus the vectors of B of some columns times an element of
        each row of A."""
        vectors = [self.operands.vector_of_b(self.v, column, k) for column in columns]
        found = []
        for number, row in enumerate(rows):
            factor = self.factor(row(k))
            before = accumulators[number * len(vectors) : (number + 1) * len(vectors)]
            for vector, accumulator in zip(vectors, before, strict=True):
                found.append(self.add_products(accumulator, factor, vector))
        return found

    def factor(self, element: Value) -> Value:
        """An element of A as it is multiplied with a vector."""
        return self.v.broadcast(element)

    def add_products(self, sums: Value, factor: Value, vector: Value) -> Value:
        return self.b.add(sums, self.b.multiply(factor, vector))


class _Part(Struct, frozen=True):
    """What is multiplied: the first rows, the columns from `start` to `stop`, the first k. For
    the rest, see `Mainloop.multiply`."""

    rows: Number
    start: Number
    stop: Number
    k: Number
    is_first: Condition
    finish: Finish | None
    prefetch_b: Callable[[Number, Number], None] | None
