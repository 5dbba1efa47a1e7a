"""Packs matrices of elements of 8 or 16 bits in groups of consecutive elements along K, for
`cpu.grouped`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from aotc.builder import Buffer
from aotc.builder.numbers import (
    Number,
    Scalar,
    Value,
    compare,
    is_equal,
    select,
    signed_minimum,
)
from aotc.kernels.cpu.dots import interleaved
from aotc.kernels.cpu.packing import transposed
from aotc.mlir import ir

if TYPE_CHECKING:
    from aotc.kernels.matmul.cpu.grouped import Branch

# The number of columns that are transposed in registers at a time.
_SIDE = 8
# The shift of a byte's value that changes its signedness: its highest bit is flipped.
MOVE = -128


class Packing(Struct):
    """Packs a part of a matrix in groups. `unsigned`: elements are zero-extended. `moves`: the
    signedness of bytes is changed."""

    kernel: Branch
    source: Buffer
    unsigned: bool
    moves: bool = False

    def rows(
        self,
        first: tuple[Number, Number],
        counts: tuple[Number, Number],
        store: Callable[[Value, Number, Number], None],
    ) -> None:
        """Packs a matrix with a row for each k. `store` is called with vectors of groups, the index
        of the group along K, and the first column in the part."""
        v, group = self.kernel, self.kernel.dot.group
        b, (k_count, columns) = v.b, counts
        whole, whole_columns = v.whole(k_count, group), v.whole(columns, v.width)

        def pack(k: Number, rows: Number, number: Number) -> None:
            with b.loop(0, whole_columns, v.width) as column:
                at = [first[0] + k, first[1] + column.index]
                store(self._groups(at, rows, None), number, column.index)
            with b.where(compare("slt", whole_columns, columns)):
                at = [first[0] + k, first[1] + whole_columns]
                mask = v.mask(columns - whole_columns)
                store(self._groups(at, rows, mask), number, whole_columns)

        with b.loop(0, whole, group) as k:
            pack(k.index, group, v.signed("divsi", k.index, group))
        with b.where(compare("slt", whole, k_count)):
            pack(whole, k_count - whole, v.signed("divsi", whole, group))

    def _groups(self, at: Sequence[Number], rows: Number, mask: Value | None) -> Value:
        """Interleaves up to a group of rows, so that the elements of a column are adjacent."""
        v, b = self.kernel, self.kernel.b
        type_ = v.of(self.source.element, v.width)

        def load(number: int) -> Value:
            place = [at[0] + number, at[1]]
            if mask is None:
                return b.load_vector(self.source, place, v.width)
            places = b.values((*self.source.leading, *place))
            operands = [self.source.value, *places, mask, b.zero(type_)]
            return b.op("vector.maskedload", operands, type_)

        return self.gathered(load, type_, rows)

    def gathered(self, load: Callable[[int], Value], type_: str, rows: Number) -> Value:
        """Interleaves up to a group of rows, so that the elements of a column are adjacent. `load`
        returns the vector of a row, of type `type_`."""
        v, b = self.kernel, self.kernel.b
        vectors = [
            load(number)
            if is_equal(rows, v.dot.group)
            else b.choose(
                compare("slt", number, rows),
                [type_],
                lambda number=number: [load(number)],
                lambda: [b.zero(type_)],
            )[0]
            for number in range(v.dot.group)
        ]
        return self._moved(interleaved(b, [self._widened(vector) for vector in vectors]))

    def copy(
        self,
        place_of: Callable[[Number], list[Number]],
        counts: tuple[Number, Number],
        packed: Buffer,
    ) -> None:
        """Packs a matrix whose rows are contiguous along K, in the same layout. `place_of`: the
        indices of a row's first element."""
        v, group = self.kernel, self.kernel.dot.group
        b, (rows, k_count) = v.b, counts
        size = v.width * group
        whole = v.whole(k_count, size)
        with b.loop(0, rows) as row:
            *outer, first = place_of(row.index)
            with b.loop(0, whole, size) as k:
                vector = b.load_vector(self.source, [*outer, first + k.index], size)
                b.store_vector(self.converted(vector), packed, [row.index, k.index])
            with b.loop(whole, k_count) as k:
                element = b.load(self.source, [*outer, first + k.index])
                b.store(self.converted(element), packed, [row.index, k.index])
            with b.loop(k_count, v.groups(k_count, group) * group) as k:
                b.store(b.zero(packed.element), packed, [row.index, k.index])

    def columns(
        self, first: tuple[Number, Number], counts: tuple[Number, Number], packed: Buffer
    ) -> None:
        """Packs a matrix with a row for each column, in groups of columns."""
        v = self.kernel
        with v.b.loop(0, v.groups(counts[1], v.width)) as number:
            self._pack_group_of_columns(number.index, first, counts, packed)

    def _pack_group_of_columns(
        self,
        number: Scalar,
        first: tuple[Number, Number],
        counts: tuple[Number, Number],
        packed: Buffer,
    ) -> None:
        v, group = self.kernel, self.kernel.dot.group
        b, k_count = v.b, counts[0]
        column = number * v.width
        count = signed_minimum(counts[1] - column, v.width)
        column = first[1] + column
        done = select(compare("eq", count, v.width), v.whole(k_count, _SIDE * group), 0)
        with b.loop(0, done, _SIDE * group) as k:
            at = v.signed("divsi", k.index, group)
            for offset in range(0, v.width, _SIDE):
                loaded = [
                    b.load_vector(
                        self.source, [column + (offset + i), first[0] + k.index], _SIDE * group
                    )
                    for i in range(_SIDE)
                ]
                bits = [
                    b.op("vector.bitcast", [self.converted(one)], v.of("i32", _SIDE))
                    for one in loaded
                ]
                for i, vector in enumerate(transposed(v, bits)):
                    groups = b.op("vector.bitcast", [vector], v.of(v.dot.element, _SIDE * group))
                    b.store_vector(groups, packed, [number, at + i, offset * group])
        with b.loop(v.signed("divsi", done, group), v.groups(k_count, group)) as k:
            b.store_vector(b.zero(v.groups_type), packed, [number, k.index, 0])
        with b.loop(0, count) as j, b.loop(done, k_count) as k:
            element = b.load(self.source, [column + j.index, first[0] + k.index])
            place = j.index * group + v.signed("remsi", k.index, group)
            at = v.signed("divsi", k.index, group)
            b.store(self.converted(element), packed, [number, at, place])

    def converted(self, value: Value) -> Value:
        """An element, or a vector of them, converted to the packed type."""
        return self._moved(self._widened(value))

    def _widened(self, value: Value) -> Value:
        is_vector = isinstance(value.type, ir.VectorType)
        type_ = self.kernel.of(self.kernel.dot.element, value.type.shape[0] if is_vector else 1)
        return self.kernel.b.convert(value, type_, unsigned=self.unsigned)

    def _moved(self, value: Value) -> Value:
        b = self.kernel.b
        if not self.moves:
            return value
        return b.op("arith.xori", [value, b.constant(MOVE, value.type)], value.type)
