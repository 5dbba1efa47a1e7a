"""The operands and the result of kernels with packed weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from msgspec import Struct

from aotc.builder import WIDEST_ACCESS, Buffer, Builder
from aotc.builder.numbers import Number, Value, unravel
from aotc.kernels.matmul.dequantized.body import ORDER, WORD
from aotc.kernels.matmul.dequantized.recognition import CHUNK, Product
from aotc.kernels.matmul.problem import ELEMENT_BYTES, EpilogueBuilder, Place

# Reads an element of an input, given the input's index and the element's indices.
Read = Callable[[int, Sequence[Number]], Value]


class Result(Struct, frozen=True):
    """The result C, with a row for each vector of x. `adds`: the product is added to C."""

    c: Value
    adds: bool
    epilogue: EpilogueBuilder | None = None


def are_of_rows(product: Product, number: int) -> bool:
    """Whether an input, which is neither x nor the packed weights, has contiguous elements for each
    row of W, and all weights of a byte share one of them."""
    places = product.places[number]
    of_rows = (product.row, *product.outer_digits)
    return number not in (product.vector, product.packed) and places == of_rows[: len(places)] != ()


class Operands:
    """The operands as buffers: x as columns x K, the packed weights as rows x bytes, and the other
    inputs unchanged."""

    def __init__(self, b: Builder, product: Product, result: Result) -> None:
        self.b, self.product, self.result = b, product, result
        sizes, count = product.sizes, product.in_a_byte
        self.rows, self.columns = sizes[product.row], product.columns
        self.outer_sizes = [sizes[loop] for loop in product.outer_digits]
        inner = product.digits[len(product.outer_digits) :]
        # The values of the digits of a byte's weights, in the order of K.
        self.inner = [
            dict(zip(inner, numbers, strict=True))
            for numbers in itertools.product(*(range(sizes[loop]) for loop in inner))
        ]
        buffers = [Buffer(value) for value in product.inputs]
        k = product.row_bytes * count
        x, packed = product.inputs[product.vector], product.inputs[product.packed]
        self.x = Buffer(self._matrix(x, self.columns, k, has_rows=product.column is not None))
        self.packed = Buffer(self._matrix(packed, self.rows, product.row_bytes, has_rows=True))
        self.others = {
            number: buffer
            for number, buffer in enumerate(buffers)
            if number not in (product.vector, product.packed)
        }
        self.c = Buffer(result.c)

    def _matrix(self, buffer: Value, rows: int, columns: int, *, has_rows: bool) -> Value:
        """The view of a contiguous buffer as a matrix, or as a vector without `has_rows`."""
        rank = buffer.type.rank
        groups = [[0], [*range(1, rank)]] if has_rows else [[*range(rank)]]
        if rank == len(groups):
            return buffer
        shape = f"{rows}x{columns}" if has_rows else str(columns)
        type_ = f"memref<{shape}x{buffer.type.element_type}>"
        return self.b.op("memref.collapse_shape", [buffer], type_, reassociation=str(groups))

    def load_words(self, row: Number, place: Number) -> list[Value]:
        """Loads the 16 bytes of a row of packed weights from `place` on, as words."""
        b = self.b
        bytes_ = b.load_vector(self.packed, [row, place], CHUNK, CHUNK)
        return b.elements(b.op("vector.bitcast", [bytes_], f"vector<{CHUNK // WORD}xi32>"))

    def flat(self, number: int) -> Buffer:
        """An input as a vector."""
        value = self.others[number].value
        count, rank = math.prod(value.type.shape), value.type.rank
        if rank == 1:
            return Buffer(value)
        type_ = f"memref<{count}x{value.type.element_type}>"
        groups = str([[*range(rank)]])
        return Buffer(self.b.op("memref.collapse_shape", [value], type_, reassociation=groups))

    def load_others(
        self, row: Number, place: Number, read: Read | None = None
    ) -> list[dict[int, Value]]:
        """For each of a byte's weights, loads the elements of the other inputs that the bytes of
        `load_words` share, by the indices of the inputs. Elements that several weights share are
        loaded once. `read` is used for the inputs that `are_of_rows`."""
        b, product = self.b, self.product
        numbers = unravel(place, *self.outer_sizes[1:])
        digits = dict(zip(product.outer_digits[:-1], numbers, strict=False))
        loaded: dict[tuple[int, tuple[int, ...]], Value] = {}
        found: list[dict[int, Value]] = []
        for inner in self.inner:
            loops: dict[int, Number] = {product.row: row, **digits, **inner}
            own = {}
            for number, buffer in self.others.items():
                places = product.places[number]
                key = number, tuple(inner[loop] for loop in places if loop in inner)
                if key not in loaded:
                    at = [loops[loop] for loop in places]
                    if read is not None and are_of_rows(product, number):
                        loaded[key] = read(number, at)
                    else:
                        loaded[key] = b.load(buffer, at)
                own[number] = loaded[key]
            found.append(own)
        return found

    def load_x(self, column: Number, place: Number) -> list[Value]:
        """Loads a vector of x for each of a byte's weights, in the byte order of `weights`."""
        b, count = self.b, CHUNK * self.product.in_a_byte
        leading = [] if self.product.column is None else [column]
        width = WIDEST_ACCESS // ELEMENT_BYTES[self.x.element]
        elements: list[Value] = []
        for first in range(0, count, width):
            at = [*leading, place * self.product.in_a_byte + first]
            elements += b.load_elements(self.x, at, width)
        type_ = f"vector<{CHUNK}x{self.x.element}>"
        return [
            b.from_elements([elements[byte * self.product.in_a_byte + i] for byte in ORDER], type_)
            for i in range(self.product.in_a_byte)
        ]

    def store(self, column: Number, row: Number, total: Value) -> None:
        b, result = self.b, self.result
        if result.adds:
            total = b.add(b.load(self.c, [column, row]), total)
        value = total
        if result.epilogue is not None:
            place = Place(None, b.value(column), b.values([row]))
            (value,) = result.epilogue(b, [total], place)
        b.store(value, self.c, [column, row])
