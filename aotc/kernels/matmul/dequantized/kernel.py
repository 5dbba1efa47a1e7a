"""The kernel of a matrix-vector product of packed weights: a warp for some rows.

A thread reads 16 bytes of each of its warp's rows, and what it multiplies them by once for all
rows. Elements of W are computed in vectors, as the operation's body says, 16 bits two at once. The
bytes of a word are taken in the order 0, 2, 1, 3: so the halves of a word that a shift and a mask
leave are two elements. An unsigned integer of at most 10 bits becomes f16 as the lowest bits of
1024, from which 1024 is subtracted. Sums are in f32; lanes add theirs by shuffles.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from typing import Any

from msgspec import Struct

from aotc.builder import WIDEST_ACCESS, Buffer, Builder
from aotc.chips import WARP
from aotc.kernels.lanes import add_over_lanes, halvings
from aotc.kernels.matmul.dequantized.integers import (
    Field,
    Known,
    float_field,
    int_of,
    integer_result,
)
from aotc.kernels.matmul.dequantized.recognition import CHUNK, Product
from aotc.kernels.matmul.problem import ELEMENT_BYTES
from aotc.kernels.matmul.scalar import launch
from aotc.mlir import ir
from aotc.numbers import Number, Value, compare, divide_up, minimum, unravel
from aotc.ops import create, defining

_WORD = 4
_ORDER = tuple(word + byte for word in range(0, CHUNK, _WORD) for byte in (0, 2, 1, 3))


class Variant(Struct, frozen=True):
    """`rows`: of a warp. `unroll`: chunks of each row that a thread reads before it uses one."""

    warps: int = 4
    rows: int = 2
    unroll: int = 2
    overlaps_previous: bool = False


class Kernel:
    """Builds the kernel at the insertion point."""

    def __init__(self, b: Builder, product: Product, variant: Variant) -> None:
        self.b, self.product, self.variant = b, product, variant
        self.in_a_byte = product.in_a_byte
        sizes = product.sizes
        self.outer_sizes = [sizes[loop] for loop in product.outer_digits]
        inner = product.digits[len(product.outer_digits) :]
        # The values of the digits of a byte's weights, in the order of K.
        self.inner = [
            dict(zip(inner, numbers, strict=True))
            for numbers in itertools.product(*(range(sizes[loop]) for loop in inner))
        ]
        self.rows = sizes[product.row]

    def build(self) -> None:
        b, product, variant = self.b, self.product, self.variant
        self.buffers = [Buffer(value) for value in product.inputs]
        x, packed = product.inputs[product.vector], product.inputs[product.packed]
        k = product.row_bytes * self.in_a_byte
        self.x = Buffer(_flat(b, x, [list(range(x.type.rank))], [k]))
        groups = [[0], list(range(1, packed.type.rank))]
        self.packed = Buffer(_flat(b, packed, groups, [self.rows, product.row_bytes]))
        self.y = Buffer(product.y)
        rows_of_block = variant.warps * variant.rows
        blocks, threads = divide_up(self.rows, rows_of_block), variant.warps * WARP
        early = variant.overlaps_previous
        with launch(b, blocks, threads, overlaps_previous=early) as block:
            warp, self.lane = unravel(block.thread, WARP)
            first = (block.index * variant.warps + warp) * variant.rows
            self._compute(first)

    def _compute(self, first: Number) -> None:
        b, variant = self.b, self.variant
        is_whole = self.rows % (variant.warps * variant.rows) == 0
        numbers = [first + i for i in range(variant.rows)]
        own = numbers if is_whole else [minimum(one, self.rows - 1) for one in numbers]
        type_ = b.type(f"vector<{CHUNK}xf32>")
        sums = [b.zero(type_)] * variant.rows
        step, end = WARP * CHUNK, self.product.row_bytes
        whole = end // (step * variant.unroll) * (step * variant.unroll)
        begin = self.lane * CHUNK
        if whole:
            sums = self._loop(own, begin, whole, step, variant.unroll, sums)
        if whole != end:
            sums = self._loop(own, begin + whole, end, step, 1, sums)
        totals = [reduce(b.add, b.elements(one)) for one in sums]
        added, number, writes = add_over_lanes(b, self.lane, totals, halvings(WARP, 1))
        with b.where(writes):
            for i, total in enumerate(added):
                row = first + (number + i)
                is_there = is_whole or compare("ult", row, self.rows)
                with b.where(is_there):
                    if self.product.fill is None:
                        total = b.add(b.load(self.y, [row]), total)
                    b.store(total, self.y, [row])

    def _loop(
        self,
        rows: Sequence[Number],
        begin: Number,
        end: int,
        step: int,
        unroll: int,
        sums: Sequence[Value],
    ) -> list[Value]:
        b = self.b
        with b.loop(begin, end, step * unroll, sums) as loop:
            places = [loop.index + i * step for i in range(unroll)]
            loaded = [[self._load_words(row, place) for row in rows] for place in places]
            found = list(loop.carried)
            for place, words in zip(places, loaded, strict=True):
                x = self._load_x(place)
                digits = self._digits(place)
                for i, row in enumerate(rows):
                    found[i] = self._multiply(row, digits, x, words[i], found[i])
            loop.next(found)
        return loop.results

    def _load_words(self, row: Number, place: Number) -> list[Value]:
        b = self.b
        bytes_ = b.load_vector(self.packed, [row, place], CHUNK, CHUNK)
        words = b.op("vector.bitcast", [bytes_], f"vector<{CHUNK // _WORD}xi32>")
        return b.elements(words)

    def _load_x(self, place: Number) -> list[Value]:
        """A vector for each of a byte's weights, in the order of bytes."""
        b, count = self.b, CHUNK * self.in_a_byte
        width = WIDEST_ACCESS // ELEMENT_BYTES[self.x.element]
        elements: list[Value] = []
        for first in range(0, count, width):
            at = [place * self.in_a_byte + first]
            elements += b.load_elements(self.x, at, width)
        type_ = f"vector<{CHUNK}x{self.x.element}>"
        return [
            b.from_elements([elements[byte * self.in_a_byte + i] for byte in _ORDER], type_)
            for i in range(self.in_a_byte)
        ]

    def _digits(self, place: Number) -> dict[int, Number]:
        """The values of the outer digits but the last one."""
        numbers = unravel(place, *self.outer_sizes[1:])
        return dict(zip(self.product.outer_digits[:-1], numbers, strict=False))

    def _multiply(
        self,
        row: Number,
        digits: dict[int, Number],
        x: Sequence[Value],
        words: Sequence[Value],
        sums: Value,
    ) -> Value:
        """The sums with 16 bytes of a row."""
        product = self.product
        for inner, factors in zip(self.inner, x, strict=True):
            loops: dict[int, Number] = {product.row: row, **digits, **inner}
            sums = _Body(self, words, loops).sums(factors, sums)
        return sums


class _Body:
    """The operation's body for one of the weights of each of 16 bytes."""

    def __init__(self, kernel: Kernel, words: Sequence[Value], loops: dict[int, Number]) -> None:
        self.b, self.kernel, self.words, self.loops = kernel.b, kernel, words, loops

    def sums(self, factors: Value, sums: Value) -> Value:
        product = self.kernel.product
        block = product.operation.regions[0].blocks[0]
        *body, _ = [one.operation for one in block.operations]
        *arguments, y = block.arguments
        values: dict[Any, Any] = {y: sums}
        for number, argument in enumerate(arguments):
            if number == product.vector:
                values[argument] = factors
            elif number == product.packed:
                values[argument] = Field.of_byte()
            else:
                values[argument] = self._broadcast(number)
        *body, last = body
        for operation in body:
            values[operation.result] = self._operation(operation, values)
        (multiplied,) = (one for one in last.operands if one != y)
        # As one operation, where the chip has one that rounds once.
        multiply: Any = defining(multiplied)
        left, right = (self._vector(values[one], one.type) for one in multiply.operands)
        return self.b.multiply_add(left, right, sums)

    def _broadcast(self, number: int) -> Value:
        """An element that all bytes have in common."""
        b, kernel = self.b, self.kernel
        buffer = kernel.buffers[number]
        at = [self.loops[loop] for loop in kernel.product.places[number]]
        element = b.load(buffer, at)
        return b.op("vector.broadcast", [element], f"vector<{CHUNK}x{buffer.element}>")

    def _operation(self, operation: Any, values: dict[Any, Any]) -> Any:
        if operation.name == "linalg.index":
            loop = ir.IntegerAttr(operation.attributes["dim"]).value
            return Known(int(self.loops[loop]))
        given = [values.get(one, int_of(one)) for one in operation.operands]
        found = integer_result(operation, given)
        if found is not None:
            return found
        field = float_field(operation, given)
        if field is not None:
            return self._float(field, operation)
        operands = [
            self._vector(value, one.type) if value is not None else self._constant(one)
            for value, one in zip(given, operation.operands, strict=True)
        ]
        result = ir.VectorType.get([CHUNK], operation.results[0].type)
        attributes = {name: operation.attributes[name] for name in operation.attributes}
        return create(operation.name, operands, [result], attributes).result

    def _vector(self, value: Any, type_: Any) -> Value:
        b = self.b
        vector = ir.VectorType.get([CHUNK], type_)
        if isinstance(value, Known):
            return b.constant(value.number, vector)
        if not isinstance(value, Field):
            return value
        # The elements as they are, in the order of the words.
        halves = b.op("vector.bitcast", [self._halves(value, 0)], f"vector<{CHUNK}xi16>")
        if value.is_signed:
            bias = b.constant(value.bias, f"vector<{CHUNK}xi16>")
            halves = b.op("arith.subi", [halves, bias], f"vector<{CHUNK}xi16>")
        if type_.width == 16:
            return halves
        extends = "arith.extsi" if value.is_signed else "arith.extui"
        name = extends if type_.width > 16 else "arith.trunci"
        return b.op(name, [halves], vector)

    def _constant(self, value: Any) -> Value:
        constant: Any = defining(value)
        attribute = constant.attributes["value"]
        vector = ir.VectorType.get([CHUNK], value.type)
        splat = ir.DenseElementsAttr.get_splat(vector, attribute)
        return create("arith.constant", [], [vector], {"value": splat}).result

    def _float(self, field: Field, operation: Any) -> Value:
        """A field as a float: exactly, as f16 has 11 bits."""
        b, f16 = self.b, f"vector<{CHUNK}xf16>"
        half = b.op("vector.bitcast", [self._halves(field, 0x6400)], f16)
        numbers = b.op("arith.subf", [half, b.constant(1024 + field.bias, f16)], f16)
        target = operation.results[0].type
        return b.convert(numbers, ir.VectorType.get([CHUNK], target))

    def _halves(self, field: Field, above: int) -> Value:
        """The field's bits of each byte, plus its bias, in halves of words, with the bits `above`
        set."""
        b, found = self.b, []
        mask = b.constant(field.mask | field.mask << 16, "i32")
        bits = b.constant(above | above << 16, "i32")
        flips = b.constant(field.bias | field.bias << 16, "i32")
        for word in self.words:
            for shift in (field.shift, field.shift + 8):
                moved = word
                if shift:
                    moved = b.op("arith.shrui", [word, b.constant(shift, "i32")], "i32")
                kept = b.op("arith.andi", [moved, mask], "i32")
                if field.bias:
                    kept = b.op("arith.xori", [kept, flips], "i32")
                found.append(b.op("arith.ori", [kept, bits], "i32") if above else kept)
        return b.from_elements(found, f"vector<{CHUNK // 2}xi32>")


def _flat(b: Builder, buffer: Any, groups: Sequence[Sequence[int]], sizes: Sequence[int]) -> Value:
    """A view of a contiguous buffer with fewer dimensions."""
    if buffer.type.rank == len(sizes):
        return buffer
    shape = "x".join(map(str, sizes))
    type_ = f"memref<{shape}x{buffer.type.element_type}>"
    return b.op("memref.collapse_shape", [buffer], type_, reassociation=str(list(groups)))
