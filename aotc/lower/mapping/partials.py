"""What a vector of columns accumulates: partial results of its lanes, and the row's result of them.

A maximum of floats that keeps NaN and tells -0 from 0 takes six instructions of AVX-512, and more
of others. The bits of floats are compared as integers instead, with one instruction for each of
three partial results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.lower.mapping.columns import Accumulator
from aotc.mlir import ir
from aotc.rewrites.reductions import named_combiner

# Columns in a vector: as many f32 as the longest registers have. Shorter ones are several. It is
# the same on every processor, and so is the order of what is combined.
LANES = 16
_SGT, _SLT, _UGT = 4, 2, 8  # arith.cmpi's numbers
# The bits of infinity, by the type.
_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000}
_BY_BITS = ("maximumf", "minimumf")


class Partials(Struct, frozen=True):
    """The partial results that an accumulator has in each lane: one by each of `kinds`, all of
    them numbers of `type`, which is the accumulator's or an integer of its bits. In the latter
    case, `infinity` is the integer of the bits of that number."""

    accumulator: Accumulator
    kinds: tuple[str, ...]
    type: Any
    infinity: int = 0

    @staticmethod
    def of(accumulator: Accumulator) -> Partials:
        infinity = _INFINITY.get(str(accumulator.type))
        if accumulator.kind in _BY_BITS and infinity is not None:
            bits = ops.integer(accumulator.type.width)
            return Partials(accumulator, ("maxsi", "minsi", "maxui"), bits, infinity)
        return Partials(accumulator, (accumulator.kind,), accumulator.type)

    def neutral(self) -> list[Any]:
        """Vectors that change no partial result, at the insertion point."""
        return [self._bits(splat(self.accumulator.neutral()))] * len(self.kinds)

    def add(self, old: Sequence[Any], vector: Any, mask: Any | None) -> list[Any]:
        """The partial results with those of a vector of columns, without those that are not in
        the mask."""
        if mask is not None:
            neutral = splat(self.accumulator.neutral())
            vector = ops.select(mask, vector, neutral)
        bits = self._bits(vector)
        return [self._combine(kind, one, bits) for kind, one in zip(self.kinds, old, strict=True)]

    def total(self, vectors: Sequence[Sequence[Any]]) -> Any:
        """The combination of all columns, of the partial results of several vectors."""
        found = []
        for number, kind in enumerate(self.kinds):
            together = self._combine_all(kind, [vector[number] for vector in vectors])
            found.append(self._combine_lanes(kind, together))
        return self._result(found, self.accumulator.type)

    def lanes(self, values: Sequence[Any]) -> Any:
        """A vector of what each lane has accumulated."""
        return self._result(values, vector_of(self.accumulator.type))

    def _result(self, found: Sequence[Any], type_: Any) -> Any:
        if len(found) == 1:
            return found[0]
        return ops.unary("arith.bitcast", self._extreme(*found), type_)

    def _extreme(self, greatest: Any, least: Any, greatest_unsigned: Any) -> Any:
        """The bits of the maximum, or the minimum. Among numbers with a sign, the greater integer
        is the smaller float."""
        type_ = greatest.type
        if self.accumulator.kind == "maximumf":
            has_positive = ops.compare(_SGT, greatest, ops.constant(type_, -1))
            bits = ops.select(has_positive, greatest, least)
            # NaN with a sign is the greatest of all, without sign. One that has none is `greatest`.
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
        """Lane by lane: neighbours, then these."""
        if len(vectors) == 1:
            return vectors[0]
        half = (len(vectors) + 1) // 2
        left, right = (self._combine_all(kind, part) for part in (vectors[:half], vectors[half:]))
        return self._combine(kind, left, right)

    def _combine_lanes(self, kind: str, vector: Any) -> Any:
        """The first half of the lanes with the second, and so on."""
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
    """The type of a vector of columns whose elements are of a type."""
    return ir.VectorType.get([LANES], type_)


def splat(value: Any) -> Any:
    """A vector with a value in each lane."""
    return ops.unary("vector.broadcast", value, vector_of(value.type))
