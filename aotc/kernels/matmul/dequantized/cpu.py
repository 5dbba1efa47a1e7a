"""The kernel of few vectors and packed weights for the CPU device, in which a thread has some rows.

A weight of at most 4 bits is one of 16 numbers, which depend on its group. They are computed once
per group, as in the body and with its rounding, and weights are looked up in this table by an
instruction of AVX2 and later. Other weights, and weights on other processors, are computed in
vectors. There is an f32 accumulator for each element of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as pairs

from aotc.builder import Builder
from aotc.builder.numbers import Number, Value, ceil_divide, compare, compare_values, minimum
from aotc.kernels.cpu.dots import call_intrinsic
from aotc.kernels.cpu.levels import AVX2, AVX512, has_level
from aotc.kernels.matmul.dequantized.body import field_of, weights_of_bytes
from aotc.kernels.matmul.dequantized.integers import Field
from aotc.kernels.matmul.dequantized.operands import Operands, Result
from aotc.kernels.matmul.dequantized.recognition import CHUNK, Product
from aotc.mlir import ir
from aotc.ops import constant_from

# Given the elements of other inputs that a group shares, and the digits that select a weight in a
# byte, returns a function from bytes to weights.
_Group = Callable[[dict[int, Value], dict[int, int]], Callable[[Value], Value]]
_BLOCKS = 64
_SUMS = 16  # vectors
_MOST_ROWS = 4
_TABLE = 16
_FLOATS = f"vector<{CHUNK}xf32>"
_NUMBERS = f"vector<{CHUNK}xi32>"


class Kernel:
    """Builds the kernel at the insertion point."""

    def __init__(self, b: Builder, product: Product, result: Result) -> None:
        self.b, self.product = b, product
        self.operands = Operands(b, product, result)
        self.rows = min(_MOST_ROWS, max(1, _SUMS // product.columns))

    def build(self) -> None:
        b, rows = self.b, self.operands.rows
        each = ceil_divide(rows, _BLOCKS * self.rows) * self.rows
        with b.launch(ceil_divide(rows, each), 1) as launch:
            begin = launch.block * each
            if not all(self._field(inner) for inner in self.operands.inner):
                self._compute(begin, each, self._computed)
                return
            with b.where(has_level(b, AVX512)) as branch:
                self._compute(begin, each, self._looked_up(self._one_of_sixteen))
            with branch.otherwise(), b.where(has_level(b, AVX2)) as other:
                self._compute(begin, each, self._looked_up(self._one_of_two_halves))
            with other.otherwise():
                self._compute(begin, each, self._computed)

    def _field(self, inner: dict[int, int]) -> Field | None:
        """The bits of a byte that are a weight, if they are few enough for a table."""
        field = field_of(self.product, inner)
        return field if field is not None and field.mask < _TABLE else None

    def _compute(self, begin: Number, count: int, group: _Group) -> None:
        b, columns, total = self.b, range(self.product.columns), self.operands.rows
        is_whole = total % count == 0 and count % self.rows == 0
        with b.loop(begin, begin + count, self.rows) as loop:
            numbers = [loop.index + i for i in range(self.rows)]
            own = numbers if is_whole else [minimum(one, total - 1) for one in numbers]
            sums = self._sums(own, group)
            for (number, column), vector in zip(pairs(numbers, columns), sums, strict=True):
                value = b.op("vector.reduction", [vector], "f32", kind="#vector.kind<add>")
                with b.where(is_whole or compare("ult", number, total)):
                    self.operands.store(column, number, value)

    def _sums(self, rows: Sequence[Number], group: _Group) -> list[Value]:
        """A vector of accumulators for each of the rows and columns."""
        b, product = self.b, self.product
        size = product.sizes[product.outer_digits[-1]]
        zeros = [b.zero(_FLOATS)] * (len(rows) * product.columns)
        with b.loop(0, product.row_bytes, size, zeros) as groups:
            functions = [
                [
                    group(others, inner)
                    for inner, others in zip(
                        self.operands.inner,
                        self.operands.load_others(row, groups.index),
                        strict=True,
                    )
                ]
                for row in rows
            ]
            with b.loop(groups.index, groups.index + size, CHUNK, groups.carried) as chunks:
                factors = [self._factors(one, chunks.index) for one in range(product.columns)]
                sums = list(chunks.carried)
                for i, row in enumerate(rows):
                    bytes_ = b.load_vector(self.operands.packed, [row, chunks.index], CHUNK)
                    for number, weights_of in enumerate(functions[i]):
                        weights = weights_of(bytes_)
                        for column, own in enumerate(factors):
                            at = i * product.columns + column
                            sums[at] = b.multiply_add(own[number], weights, sums[at])
                chunks.next(sums)
            groups.next(chunks.results)
        return groups.results

    def _factors(self, column: int, place: Number) -> list[Value]:
        """A vector of x for each of a byte's weights."""
        b, operands, count = self.b, self.operands, self.product.in_a_byte
        leading = [] if self.product.column is None else [column]
        places = [[*leading, place * count + i * CHUNK] for i in range(count)]
        loaded = [b.load_vector(operands.x, at, CHUNK) for at in places]
        return self._apart([b.convert(one, _FLOATS) for one in loaded])

    def _apart(self, vectors: Sequence[Value]) -> list[Value]:
        """Deinterleaves consecutive vectors: of `count` vectors, result i has every `count`-th
        element of their concatenation, from element i on."""
        count = len(vectors)
        if count == 1:
            return list(vectors)
        if count % 2:
            elements = [one for vector in vectors for one in self.b.elements(vector)]
            return [self.b.from_elements(elements[i::count], _FLOATS) for i in range(count)]
        halves = []
        for first in (0, 1):
            mask = ir.DenseI64ArrayAttr.get([*range(first, 2 * CHUNK, 2)])
            kept = [
                self.b.op("vector.shuffle", pair, _FLOATS, mask=mask)
                for pair in zip(vectors[::2], vectors[1::2], strict=True)
            ]
            halves.append(self._apart(kept))
        return [one for pair in zip(*halves, strict=True) for one in pair]

    # --- Weights -------------------------------------------------------------------------------

    def _computed(
        self, others: dict[int, Value], inner: dict[int, int]
    ) -> Callable[[Value], Value]:
        return lambda bytes_: weights_of_bytes(self.b, self.product, bytes_, others, inner)

    def _looked_up(self, look_up: Callable[[Value, Value], Value]) -> _Group:
        """The function of a group with a table. `look_up`: returns elements of a table, indexed by
        the lowest bits of numbers."""
        b = self.b

        def group(others: dict[int, Value], inner: dict[int, int]) -> Callable[[Value], Value]:
            field = self._field(inner)
            assert field is not None
            bits = [(number & field.mask) << field.shift for number in range(_TABLE)]
            bytes_ = constant_from(b.attribute(f"dense<{bits}> : vector<{_TABLE}xi8>"))
            table = weights_of_bytes(b, self.product, bytes_, others, inner)

            def weights_of(bytes_: Value) -> Value:
                numbers = b.convert(bytes_, _NUMBERS, unsigned=True)
                if field.shift:
                    shift = b.constant(field.shift, _NUMBERS)
                    numbers = b.op("arith.shrui", [numbers, shift], _NUMBERS)
                mask = b.constant(field.mask, _NUMBERS)
                return look_up(table, b.op("arith.andi", [numbers, mask], _NUMBERS))

            return weights_of

        return group

    def _one_of_sixteen(self, table: Value, numbers: Value) -> Value:
        return call_intrinsic(self.b, "avx512.permvar.sf.512", [table, numbers], _FLOATS)

    def _one_of_two_halves(self, table: Value, numbers: Value) -> Value:
        """Looks up vectors of 8 numbers in both halves of the table, and selects by the number."""
        b, half = self.b, CHUNK // 2
        low, high = (self._half(table, i, "f32") for i in range(2))
        found = []
        for i in range(2):
            own = self._half(numbers, i, "i32")
            of_low, of_high = (
                call_intrinsic(b, "avx2.permps", [part, own], f"vector<{half}xf32>")
                for part in (low, high)
            )
            is_low = compare_values("slt", own, b.constant(half, f"vector<{half}xi32>"))
            found.append(b.select(is_low, of_low, of_high))
        mask = ir.DenseI64ArrayAttr.get([*range(CHUNK)])
        return b.op("vector.shuffle", found, _FLOATS, mask=mask)

    def _half(self, vector: Value, number: int, element: str) -> Value:
        half = CHUNK // 2
        mask = ir.DenseI64ArrayAttr.get([*range(number * half, (number + 1) * half)])
        return self.b.op("vector.shuffle", [vector, vector], f"vector<{half}x{element}>", mask=mask)
