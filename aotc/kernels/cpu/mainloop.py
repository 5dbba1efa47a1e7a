"""The mainloop of a product of matrices whose factors and accumulators are in a core's caches."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from aotc.builder import Buffer
from aotc.kernels.cpu.vectors import Vectors
from aotc.module_names import REGISTER_LENGTH
from aotc.numbers import Condition, Number, Scalar, Value, compare

# How many k an iteration takes that has the accumulators of one row group.
_UNROLLED = 4
# With vector registers as long as a vector of columns (AVX-512), the mainloop computes as many
# groups of rows and of columns at a time: two multipliers are busy, and an element of A is loaded
# for two vectors of B. In units of 16 bytes, as LLVM's vscale.
_LONG_REGISTERS, _ROW_GROUPS, _COLUMN_GROUPS = 4, 2, 2


class Factors(Struct, frozen=True):
    """A and B. `a` is indexed by row and k, or the other way round; `b` by the group of columns, k,
    and the column in the group, or by k and the column."""

    a: Buffer
    b: Buffer
    is_a_transposed: bool = False
    has_b_groups: bool = True


class Mainloop:
    """C += A · B, in groups of `rows` rows and a vector of columns, all of which are whole: A has
    the rows for them, and B and C have the columns.

    It keeps the accumulators of some rows and a vector of columns in registers, and for each k
    multiplies elements of A with a vector of B.
    """

    def __init__(self, v: Vectors, rows: int, factors: Factors, c: Buffer) -> None:
        self.v, self.b, self.rows, self.factors, self.c = v, v.b, rows, factors, c

    def multiply(self, rows: Number, columns: Number, k: Number, is_first: Condition) -> None:
        """Adds the products of so many rows, columns and k to C, which is 0 before if `is_first`.
        The products of an element of C are added in the same order for all sizes of registers."""
        length = self.b.op("vector.vscale", [], "index", **{REGISTER_LENGTH: "unit"})
        has_long_registers = compare("sge", length, _LONG_REGISTERS)
        groups = self.v.groups(rows, self.rows), self.v.groups(columns, self.v.width)
        with self.b.where(has_long_registers) as branch:
            self._multiply_groups(groups, (_ROW_GROUPS, _COLUMN_GROUPS), k, is_first)
        with branch.otherwise():
            self._multiply_groups(groups, (1, 1), k, is_first)

    def _multiply_groups(
        self,
        groups: tuple[Number, Number],
        at_once: tuple[int, int],
        k: Number,
        is_first: Condition,
    ) -> None:
        """Takes as many groups of rows and of columns at a time, and one where fewer are left."""
        b = self.b
        for start, stop, columns in self._parts(groups[1], at_once[1]):
            with b.loop(start, stop, columns) as column_group:
                for first, last, rows in self._parts(groups[0], at_once[0]):
                    with b.loop(first, last, rows) as row_group:
                        place = row_group.index, column_group.index
                        self._multiply(place, (rows, columns), k, is_first)

    def _parts(self, count: Number, size: int) -> list[tuple[Number, Number, int]]:
        """The bounds and steps of loops over whole parts, and over what is left."""
        if size == 1:
            return [(0, count, 1)]
        whole = self.v.whole(count, size)
        return [(0, whole, size), (whole, count, 1)]

    def _multiply(
        self,
        place: tuple[Scalar, Scalar],
        groups: tuple[int, int],
        k: Number,
        is_first: Condition,
    ) -> None:
        """Adds the products of some groups of rows and of columns, which begin at `place`."""
        b, v, (row_group, column_group) = self.b, self.v, place
        first, column = row_group * self.rows, column_group * v.width
        rows = [first + i for i in range(groups[0] * self.rows)]
        columns = [column + i * v.width for i in range(groups[1])]
        places = [[row, column] for row in rows for column in columns]
        accumulators = b.choose(
            is_first,
            [v.vector_type] * len(places),
            lambda: [b.zero(v.vector_type)] * len(places),
            lambda: [v.load(self.c, at, v.width) for at in places],
        )
        unrolled = max(_UNROLLED // (groups[0] * groups[1]), 1)
        for start, stop, each in self._parts(k, unrolled):
            with b.loop(start, stop, each, accumulators) as loop:
                accumulators = loop.carried
                for i in range(each):
                    in_b = [column_group + j for j in range(groups[1])]
                    accumulators = self._mma(rows, in_b, loop.index + i, accumulators)
                loop.next(accumulators)
            accumulators = loop.results
        for at, vector in zip(places, accumulators, strict=True):
            v.store(vector, self.c, at)

    def _mma(
        self,
        rows: Sequence[Number],
        groups: Sequence[Number],
        k: Number,
        accumulators: Sequence[Value],
    ) -> list[Value]:
        """The accumulators of some rows, plus the vectors of B of some groups of columns times an
        element of each row of A."""
        b, v, factors = self.b, self.v, self.factors
        vectors = [v.load(factors.b, self._place_in_b(one, k), v.width) for one in groups]
        found = []
        for number, row in enumerate(rows):
            element = b.load(factors.a, [k, row] if factors.is_a_transposed else [row, k])
            factor = v.broadcast(element)
            before = accumulators[number * len(groups) : (number + 1) * len(groups)]
            for vector, accumulator in zip(vectors, before, strict=True):
                found.append(b.add(accumulator, b.multiply(factor, vector)))
        return found

    def _place_in_b(self, group: Number, k: Number) -> list[Number]:
        """Where a group of columns has its vector for a k."""
        return [group, k, 0] if self.factors.has_b_groups else [k, group * self.v.width]
