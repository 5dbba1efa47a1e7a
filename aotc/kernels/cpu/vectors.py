"""A kernel's vectors: as long as a cache line, whatever registers the processor has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aotc.builder import Buffer, Builder
from aotc.kernels.matmul.problem import ELEMENT_BYTES
from aotc.mlir import ir
from aotc.numbers import Number, Scalar, Value

VECTOR_BYTES = 64
# What `Vectors.load_strided` takes.
VECTOR_STRIDES = (1, 2)
_OGT = 2  # arith.cmpf's number for "greater, and no NaN"


class Vectors:
    """The base of kernels that compute in one type. `type` is that of accumulators, `width` how
    many a vector has.

    Counts are divided as signed numbers.
    """

    def __init__(self, b: Builder, element: str, vectors: int = 1) -> None:
        self.b, self.type = b, element
        self.bytes = ELEMENT_BYTES[element]
        self.width = vectors * VECTOR_BYTES // self.bytes
        self.vector_type = self.of(element, self.width)

    def of(self, element: str, width: int) -> str:
        """The type of an element, or of a vector of `width`."""
        return element if width == 1 else f"vector<{width}x{element}>"

    # --- Counts --------------------------------------------------------------------------------

    def signed(self, operation: str, left: Number, right: Number) -> Scalar:
        made: Scalar = self.b.op(f"arith.{operation}", self.b.values([left, right]), "index")
        return made

    def groups(self, count: Number, size: Number) -> Scalar:
        """How many groups of `size` there are, the last one of which may be smaller."""
        return self.signed("ceildivsi", count, size)

    def whole(self, count: Number, size: int) -> Number:
        """How many of `count` are in groups that are whole."""
        return count - self.signed("remsi", count, size)

    def vectorized(self, count: Number) -> list[tuple[Number, Number, int]]:
        """The bounds and steps of two loops: over whole vectors, and over the elements left."""
        whole = self.whole(count, self.width)
        return [(0, whole, self.width), (whole, count, 1)]

    # --- Memory --------------------------------------------------------------------------------

    def load(self, buffer: Buffer, at: Sequence[Number], width: int = 1) -> Value:
        """An element, or a vector of `width`, in the type of accumulators."""
        b = self.b
        value = b.load(buffer, at) if width == 1 else b.load_vector(buffer, at, width)
        return b.convert(value, self.of(self.type, width), unsigned=buffer.unsigned)

    def mask(self, count: Number) -> Value:
        """The mask of a vector's first elements."""
        return self.b.op("vector.create_mask", [self.b.value(count)], f"vector<{self.width}xi1>")

    def load_masked(self, buffer: Buffer, at: Sequence[Number], mask: Value) -> Value:
        """A vector in the type of accumulators, with zeros where the mask has none: there, nothing
        is read."""
        loaded = self.load_elements_masked(buffer, at, mask)
        return self.b.convert(loaded, self.vector_type, unsigned=buffer.unsigned)

    def load_elements_masked(self, buffer: Buffer, at: Sequence[Number], mask: Value) -> Value:
        """As `load_masked`, in the buffer's own type."""
        b = self.b
        type_ = self.of(buffer.element, self.width)
        places = b.values((*buffer.leading, *at))
        return b.op("vector.maskedload", [buffer.value, *places, mask, b.zero(type_)], type_)

    def masks_of(self, count: Number, stride: int) -> dict[int, Value]:
        """Where the vectors begin that have the elements of a vector of a stride: the last one ends
        with the last element. The masks of those that have the first `count`."""
        if stride == 1:
            return {0: self.mask(count)}
        second = self.width - 1
        last = count * 2 - 1
        return {0: self.mask(last), second: self.mask(last - second)}

    def load_strided(
        self,
        buffer: Buffer,
        first: Number,
        stride: int,
        masks: Mapping[int, Value] | None = None,
        *,
        width: int | None = None,
    ) -> Value:
        """A vector of every element, or of every second one, of a buffer of one dimension; with
        `masks`, which `masks_of` makes, of so many: only these are read, and the rest is anything.
        Without masks, it may have another `width`.
        """
        if masks is None:
            width = width or self.width
            starts = (0,) if stride == 1 else (0, width - 1)
            vectors = [self.load(buffer, [first + start], width) for start in starts]
        else:
            vectors = [self.load_masked(buffer, [first + i], mask) for i, mask in masks.items()]
        return vectors[0] if len(vectors) == 1 else self.every_second(*vectors)

    def every_second(self, one: Value, other: Value) -> Value:
        """Every second element of what two vectors have, the second of which begins with the last
        element of the first."""
        width = one.type.shape[0]
        mask = ir.DenseI64ArrayAttr.get([*range(0, width, 2), *range(width + 1, 2 * width, 2)])
        return self.b.op("vector.shuffle", [one, other], one.type, mask=mask)

    def store(self, value: Value, buffer: Buffer, at: Sequence[Number]) -> None:
        """Stores an element or a vector."""
        is_vector = isinstance(value.type, ir.VectorType)
        (self.b.store_vector if is_vector else self.b.store)(value, buffer, at)

    # --- Arithmetic ----------------------------------------------------------------------------

    def maximum(self, left: Value, right: Value) -> Value:
        """The larger ones of two numbers or vectors, `right` where one is NaN: one instruction."""
        bits: Any = ir.IntegerType.get_signless(1)
        if isinstance(left.type, ir.VectorType):
            bits = ir.VectorType.get(left.type.shape, bits)
        is_larger = self.b.op("arith.cmpf", [left, right], bits, predicate=f"{_OGT} : i64")
        return self.b.op("arith.select", [is_larger, left, right], left.type)

    def reduced(self, combine: Callable[[Value, Value], Value], vector: Value) -> Value:
        """A vector's elements combined, half with half."""
        count = vector.type.shape[0]
        while count > 1:
            count //= 2
            halves = [
                self.b.op(
                    "vector.shuffle",
                    [vector, vector],
                    self.of(self.type, count) if count > 1 else f"vector<1x{self.type}>",
                    mask=ir.DenseI64ArrayAttr.get(list(range(first, first + count))),
                )
                for first in (0, count)
            ]
            vector = combine(*halves)
        return self.b.extract(vector, [0])

    def broadcast(self, element: Value) -> Value:
        return self.b.op("vector.broadcast", [element], self.vector_type)

    def total(self, vector: Value) -> Value:
        """The sum of a vector's elements: of the sums of its halves' elements, pair by pair."""
        b, width = self.b, vector.type.shape[0]
        while width > 1:
            width //= 2
            low, high = (
                b.op(
                    "vector.shuffle",
                    [vector, vector],
                    f"vector<{width}x{self.type}>",
                    mask=ir.DenseI64ArrayAttr.get(list(range(first, first + width))),
                )
                for first in (0, width)
            )
            vector = b.add(low, high)
        return b.extract(vector, [0])
