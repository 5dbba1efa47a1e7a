"""Partial results in the lanes of a vector of columns, and their combination to the row's result.

A maximum of floats that propagates NaN and distinguishes -0 from 0 takes six instructions of
AVX-512, and more on others. Instead, the bits of the floats are compared as integers, with one
instruction for each of three partial results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.lower.mapping.columns import Accumulator
from aotc.mlir import ir
from aotc.rewrites.reductions import named_combiner

# Columns in a vector: the number of f32 in the widest registers. With narrower registers, it is
# several. It is the same on each processor, and so is the order of combinations.
LANES = 16
_SGT, _SLT, _UGT = 4, 2, 8  # arith.cmpi's numbers
# Element type → the bits of infinity.
_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000}
_BY_BITS = ("maximumf", "minimumf")


class Partials(Struct, frozen=True):
    """The partial results of an accumulator in each lane: one for each of `kinds`.

    They have type `type`, which is the accumulator's or an integer of the same width. In the latter
    case, `infinity` is the bit pattern of infinity.
    """

    accumulator: Accumulator
    kinds: tuple[str, ...]
    type: Any
    infinity: int = 0

    @staticmethod
    def of(accumulator: Accumulator) -> Partials:
        """The partial results for an accumulator: by bits for maxima and minima of floats up to 32
        bits."""
        infinity = _INFINITY.get(str(accumulator.type))
        if accumulator.kind in _BY_BITS and infinity is not None:
            bits = ops.integer(accumulator.type.width)
            return Partials(accumulator, ("maxsi", "minsi", "maxui"), bits, infinity)
        return Partials(accumulator, (accumulator.kind,), accumulator.type)

    def neutral(self) -> list[Any]:
        """Vectors of the identity element, at the insertion point."""
        return [self._bits(splat(self.accumulator.neutral()))] * len(self.kinds)

    def add(self, old: Sequence[Any], vector: Any, mask: Any | None) -> list[Any]:
        """The partial results combined with a vector of columns, without the columns outside of the
        mask."""
        if mask is not None:
            neutral = splat(self.accumulator.neutral())
            vector = ops.select(mask, vector, neutral)
        bits = self._bits(vector)
        return [self._combine(kind, one, bits) for kind, one in zip(self.kinds, old, strict=True)]

    def total(self, vectors: Sequence[Sequence[Any]]) -> Any:
        """The combination of all lanes of the partial results of several vectors."""
        found = []
        for number, kind in enumerate(self.kinds):
            combined = self._combine_all(kind, [vector[number] for vector in vectors])
            found.append(self._combine_lanes(kind, combined))
        return self._result(found, self.accumulator.type)

    def lanes(self, values: Sequence[Any]) -> Any:
        """The vector of each lane's result."""
        return self._result(values, vector_of(self.accumulator.type))

    def _result(self, found: Sequence[Any], type_: Any) -> Any:
        if len(found) == 1:
            return found[0]
        return ops.unary("arith.bitcast", self._extreme(*found), type_)

    def _extreme(self, greatest: Any, least: Any, greatest_unsigned: Any) -> Any:
        """The bits of the maximum or minimum. Among negative floats, the greater integer is the
        smaller float."""
        type_ = greatest.type
        if self.accumulator.kind == "maximumf":
            has_positive = ops.compare(_SGT, greatest, ops.constant(type_, -1))
            bits = ops.select(has_positive, greatest, least)
            # A NaN with a sign is the greatest as an unsigned integer. A NaN without a sign is
            # `greatest`.
            negative = ops.constant(type_, self.infinity - (1 << (self.type.width - 1)))
            is_nan = ops.compare(_UGT, greatest_unsigned, negative)
            return ops.select(is_nan, greatest_unsigned, bits)
        bits = ops.select(
            ops.compare(_SLT, least, ops.constant(type_, 0)), greatest_unsigned, least
        )
        is_nan = ops.compare(_SGT, greatest, ops.constant(type_, self.infinity))
        return ops.select(is_nan, greatest, bits)

    def _bits(self, vector: Any) -> Any:
        type_ = vector_of(self.type)
        return vector if vector.type == type_ else ops.unary("arith.bitcast", vector, type_)

    def _combine(self, kind: str, left: Any, right: Any) -> Any:
        return named_combiner(kind, left.type)(left, right)

    def _combine_all(self, kind: str, vectors: Sequence[Any]) -> Any:
        """Combines vectors lane by lane, as a balanced tree."""
        if len(vectors) == 1:
            return vectors[0]
        half = (len(vectors) + 1) // 2
        left, right = (self._combine_all(kind, part) for part in (vectors[:half], vectors[half:]))
        return self._combine(kind, left, right)

    def _combine_lanes(self, kind: str, vector: Any) -> Any:
        """Combines the first half of the lanes with the second half, until one lane is left."""
        lanes = LANES
        while lanes > 1:
            lanes //= 2
            type_ = ir.VectorType.get([lanes], self.type)
            halves = []
            for first in (0, lanes):
                attributes = {"mask": ir.DenseI64ArrayAttr.get(range(first, first + lanes))}
                shuffled = ops.create("vector.shuffle", [vector, vector], [type_], attributes)
                halves.append(shuffled.result)
            vector = self._combine(kind, *halves)
        return ops.extract(vector, 0)


def vector_of(type_: Any) -> Any:
    """The type of a vector of columns with this element type."""
    return ir.VectorType.get([LANES], type_)


def splat(value: Any) -> Any:
    """A vector with the value in each lane."""
    return ops.unary("vector.broadcast", value, vector_of(value.type))
