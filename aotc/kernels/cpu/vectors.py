"""Vectors of CPU kernels. They have the size of a cache line (64 bytes), whatever the size of the
processor's registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Scalar, Value, compare
from aotc.kernels.matmul.problem import ELEMENT_BYTES
from aotc.mlir import ir

VECTOR_BYTES = 64
# The strides of vectors that are multiplied, and of those that are packed. A
# vector takes as many loads.
VECTOR_STRIDES = (1, 2)
PACKED_STRIDES = (1, 2, 4)
_OGT = 2  # arith.cmpf's predicate "ordered and greater than"


class Vectors:
    """Vector operations of a kernel that accumulates in one element type. `type` is that type, and
    `width` the number of elements of a vector.

    Integer divisions of counts are signed.
    """

    def __init__(self, b: Builder, element: str, vectors: int = 1) -> None:
        self.b, self.type = b, element
        self.bytes = ELEMENT_BYTES[element]
        self.width = vectors * VECTOR_BYTES // self.bytes
        self.vector_type = self.of(element, self.width)

    def of(self, element: str, width: int) -> str:
        """The element type for a `width` of 1, else the type of a vector of `width` elements."""
        return element if width == 1 else f"vector<{width}x{element}>"

    # --- Counts --------------------------------------------------------------------------------

    def signed(self, operation: str, left: Number, right: Number) -> Scalar:
        made: Scalar = self.b.op(f"arith.{operation}", self.b.values([left, right]), "index")
        return made

    def groups(self, count: Number, size: Number) -> Scalar:
        """The number of groups of `size` elements: `count` / `size`, rounded up."""
        return self.signed("ceildivsi", count, size)

    def whole(self, count: Number, size: int) -> Number:
        """`count`, rounded down to a multiple of `size`."""
        return count - self.signed("remsi", count, size)

    def vectorized(self, count: Number) -> list[tuple[Number, Number, int]]:
        """The bounds and steps of two loops: over whole vectors, and over the remaining
        elements."""
        whole = self.whole(count, self.width)
        return [(0, whole, self.width), (whole, count, 1)]

    def each_vector(self, start: Number, stop: Number, width: int) -> Iterator[tuple[Number, int]]:
        """Builds the body of the caller's loop for all elements from `start` to `stop`: once in a
        loop over vectors of `width` elements, and once for a vector of half the width, a quarter
        of it, and so on. Yields a vector's first element and its width."""
        end = start + self.whole(stop - start, width)
        with self.b.loop(start, end, width) as loop:
            yield loop.index, width
        yield from self.each_shorter_vector(end, stop, width)

    def each_shorter_vector(
        self, start: Number, stop: Number, width: int
    ) -> Iterator[tuple[Number, int]]:
        """See `each_vector`: for fewer than `width` elements. There are no loops: LLVM would
        vectorize them, and share their induction variables with the loops around them, which takes
        longer than all else."""
        while width > 1:
            width //= 2
            end = start + self.whole(stop - start, width)
            with self.b.where(compare("slt", start, end)):
                yield start, width
            start = end

    # --- Memory --------------------------------------------------------------------------------

    def load(self, buffer: Buffer, at: Sequence[Number], width: int = 1) -> Value:
        """Loads an element, or a vector of `width`, and converts it to `type`."""
        b = self.b
        value = b.load(buffer, at) if width == 1 else b.load_vector(buffer, at, width)
        return b.convert(value, self.of(self.type, width), unsigned=buffer.unsigned)

    def mask(self, count: Number) -> Value:
        """The mask of the first `count` elements of a vector."""
        return self.b.op("vector.create_mask", [self.b.value(count)], f"vector<{self.width}xi1>")

    def load_masked(self, buffer: Buffer, at: Sequence[Number], mask: Value) -> Value:
        """Loads a vector by a mask and converts it to `type`. Masked-off elements are 0, and are
        not read."""
        loaded = self.load_elements_masked(buffer, at, mask)
        return self.b.convert(loaded, self.vector_type, unsigned=buffer.unsigned)

    def load_elements_masked(self, buffer: Buffer, at: Sequence[Number], mask: Value) -> Value:
        """As `load_masked`, without the conversion."""
        b = self.b
        type_ = self.of(buffer.element, self.width)
        places = b.values((*buffer.leading, *at))
        return b.op("vector.maskedload", [buffer.value, *places, mask, b.zero(type_)], type_)

    def masks_of(self, count: Number, stride: int) -> dict[int, Value]:
        """The masked loads that bring the first `count` elements of a strided vector: for each, its
        offset from the first element, and its mask."""
        last = count * stride - (stride - 1)
        return {start: self.mask(last - start) for start in _starts(self.width, stride)}

    def load_strided(
        self,
        buffer: Buffer,
        first: Number,
        stride: int,
        masks: Mapping[int, Value] | None = None,
        *,
        width: int | None = None,
    ) -> Value:
        """Loads a vector from a buffer of one dimension, from `first` on, with one of
        `PACKED_STRIDES`. With `masks` of `masks_of`, only those elements are read, and the others
        are unspecified. Without masks, it may have another `width`.
        """
        if masks is None:
            width = width or self.width
            vectors = [
                self.load(buffer, [first + start], width) for start in _starts(width, stride)
            ]
        else:
            vectors = [self.load_masked(buffer, [first + i], mask) for i, mask in masks.items()]
        return self.strided(vectors)

    def strided(self, vectors: Sequence[Value]) -> Value:
        """The elements with a stride of the number of `vectors`, which begin at `_starts`."""
        width, stride = vectors[0].type.shape[0], len(vectors)
        starts = _starts(width, stride)
        # Of each vector, which elements of the result it has, and where.
        parts = [(vector, dict[int, int]()) for vector in vectors]
        for i in range(width):
            number = next(n for n, start in enumerate(starts) if i * stride < start + width)
            parts[number][1][i] = i * stride - starts[number]
        while len(parts) > 1:
            parts = [self._joined(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0][0]

    def _joined(
        self, left: tuple[Value, dict[int, int]], right: tuple[Value, dict[int, int]]
    ) -> tuple[Value, dict[int, int]]:
        """The elements of two vectors, each at its place in the result."""
        (one, own), (other, others) = left, right
        width = one.type.shape[0]
        places = own | {i: width + place for i, place in others.items()}
        mask = ir.DenseI64ArrayAttr.get([places.get(i, 0) for i in range(width)])
        joined = self.b.op("vector.shuffle", [one, other], one.type, mask=mask)
        return joined, {i: i for i in places}

    def store(self, value: Value, buffer: Buffer, at: Sequence[Number]) -> None:
        """Stores an element or a vector."""
        is_vector = isinstance(value.type, ir.VectorType)
        (self.b.store_vector if is_vector else self.b.store)(value, buffer, at)

    # --- Arithmetic ----------------------------------------------------------------------------

    def maximum(self, left: Value, right: Value) -> Value:
        """The maximum of two scalars or vectors, elementwise; `right` where an operand is NaN. It
        is one instruction (x86's max has these semantics)."""
        bits: Any = ir.IntegerType.get_signless(1)
        if isinstance(left.type, ir.VectorType):
            bits = ir.VectorType.get(left.type.shape, bits)
        is_larger = self.b.op("arith.cmpf", [left, right], bits, predicate=f"{_OGT} : i64")
        return self.b.op("arith.select", [is_larger, left, right], left.type)

    def reduced(self, combine: Callable[[Value, Value], Value], vector: Value) -> Value:
        """The reduction of a vector's elements by `combine`, which is applied to the two halves in
        each step."""
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

    def broadcast(self, element: Value, width: int | None = None) -> Value:
        """The element for a `width` of 1, otherwise a vector of it; a whole one by default."""
        if width == 1:
            return element
        type_ = self.of(self.type, width or self.width)
        return self.b.op("vector.broadcast", [element], type_)

    def total(self, vector: Value) -> Value:
        """The sum of a vector's elements. Each step adds the upper half to the lower half."""
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


def _starts(width: int, stride: int) -> list[int]:
    """The offsets of the loads that bring a strided vector. The last one ends with its last
    element."""
    return [*range(0, width * (stride - 1), width), (width - 1) * (stride - 1)]
