"""The online softmax (Milakov and Gimelshein) of scores in a core's caches, tile by tile."""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct

from aotc.builder import Buffer
from aotc.builder.numbers import Number, Scalar, Value, signed_maximum, signed_minimum
from aotc.kernels.cpu.vectors import Vectors

# The number of independent chains of a reduction over a row, to hide the latency of each operation.
_CHAINS = 4


class Statistics(Struct, frozen=True):
    """The state of each row: the largest score so far, the sum of exp(score - largest), and the
    factor that rescales the accumulators from before the last tile."""

    row_max: Buffer
    row_sum: Buffer
    factor: Buffer


class Tile(Struct, frozen=True):
    """`rows` queries from `row` on, and `keys` keys from `key` on."""

    row: Number
    rows: Number
    key: Number
    keys: Number


class Softmax:
    """The softmax of `scores` times `scale`. `causal`: a query attends to no later key. `mask_of`:
    returns the mask of a query of the tile, by key; None without a mask. With `mask_replaces`,
    elements of the mask other than 0 replace scores, instead of being added to them.

    From rows whose scores are all -infinity, 0 is subtracted, so that P is 0, not NaN. A NaN is
    ignored by the maximum, but its P, and thus the sum, is NaN.
    """

    def __init__(
        self,
        v: Vectors,
        scores: Buffer,
        statistics: Statistics,
        *,
        scale: float,
        causal: bool,
        mask_of: Callable[[Number], Buffer] | None,
        mask_replaces: bool,
    ) -> None:
        self.v, self.b, self.scores, self.statistics = v, v.b, scores, statistics
        self.scale, self.causal, self.mask_of = scale, causal, mask_of
        self.mask_replaces = mask_replaces

    def start(self, rows: Number) -> None:
        """Initializes the state of the rows, rounded up to whole vectors."""
        b, v, of = self.b, self.v, self.statistics
        with b.loop(0, v.groups(rows, v.width)) as group:
            at = [group.index * v.width]
            v.store(b.constant(-math.inf, v.vector_type), of.row_max, at)
            v.store(b.zero(v.vector_type), of.row_sum, at)

    def update(self, tile: Tile, o: Buffer, columns: int) -> None:
        """Replaces the scores of a tile by P = exp(score - largest), and rescales O, which has
        `columns` columns."""
        b, v, of = self.b, self.v, self.statistics
        with b.loop(0, tile.rows) as row:
            self._find_maximum(tile, row.index)
        with b.loop(0, v.groups(tile.rows, v.width)) as group:
            at = [group.index * v.width]
            v.store(self._exp(v.load(of.factor, at, v.width)), of.factor, at)
        with b.loop(0, tile.rows) as row:
            self._make_p(tile, row.index)
            self._rescale(row.index, o, columns)

    def inverse_row_sum(self, row: Number, *, empty_is_zero: bool) -> Value:
        """1 / the row's sum. With `empty_is_zero`, it is 0 for a row whose scores are all
        -infinity, and whose sum is 0."""
        b, of = self.b, self.statistics
        row_sum = b.load(of.row_sum, [row])
        inverse = b.op("arith.divf", [b.constant(1, self.v.type), row_sum], self.v.type)
        if not empty_is_zero:
            return inverse
        return b.select(self._is_empty(b.load(of.row_max, [row])), b.zero(self.v.type), inverse)

    # --- Parts of an update --------------------------------------------------------------------

    def _seen(self, tile: Tile, row: Number) -> Number:
        """The number of the tile's keys that the row attends to."""
        if not self.causal:
            return tile.keys
        seen = tile.row + row + 1 - tile.key
        return signed_maximum(signed_minimum(seen, tile.keys), 0)

    def _padded(self, count: Number) -> Number:
        return self.v.groups(count, self.v.width) * self.v.width

    def _find_maximum(self, tile: Tile, row: Scalar) -> None:
        """Adds the mask, sets the scores of masked keys in the last vector to -infinity, and
        updates the row's largest score. The row's factor is set to its exponent, to which `update`
        applies exp."""
        b, v, of = self.b, self.v, self.statistics
        seen = self._seen(tile, row)
        if self.mask_of is not None:
            self._add_mask(self.mask_of(row), tile, row, seen)
        padded = self._padded(seen)
        with b.loop(seen, padded) as loop:
            b.store(b.constant(-math.inf, v.type), self.scores, [row, loop.index])
        least = b.constant(-math.inf, v.vector_type)
        found = self._reduced(row, padded, v.maximum, least, lambda scores, _: scores)
        before = b.load(of.row_max, [row])
        largest = v.maximum(found, before)
        b.store(largest, of.row_max, [row])
        b.store(self._scaled(self._minus(before, self._shift(largest))), of.factor, [row])

    def _add_mask(self, mask: Buffer, tile: Tile, row: Scalar, seen: Number) -> None:
        b, v = self.b, self.v
        for column, width in v.each_vector(0, seen, v.width):
            at = [row, column]
            scale = b.constant(self.scale, v.of(v.type, width))
            score = b.multiply(v.load(self.scores, at, width), scale)
            element = v.load(mask, [tile.key + column], width)
            v.store(self._masked(score, element), self.scores, at)

    def _masked(self, score: Value, element: Value) -> Value:
        b = self.b
        if not self.mask_replaces:
            return b.add(score, element)
        is_kept = b.compare_floats("oeq", element, b.zero(element.type))
        found: Value = b.select(is_kept, score, element)
        return found

    def _make_p(self, tile: Tile, row: Scalar) -> None:
        """Computes P of the row, and updates its sum. P of masked keys is 0."""
        b, v, of = self.b, self.v, self.statistics
        padded = self._padded(self._seen(tile, row))
        shift = v.broadcast(self._shift(b.load(of.row_max, [row])))

        def make(scores: Value, at: list[Number]) -> Value:
            p = self._exp(self._scaled(self._minus(scores, shift)))
            v.store(p, self.scores, at)
            return p

        found = self._reduced(row, padded, self._plus, b.zero(v.vector_type), make)
        before = b.multiply(b.load(of.row_sum, [row]), b.load(of.factor, [row]))
        b.store(b.add(before, found), of.row_sum, [row])
        if self.causal:
            with b.loop(padded, self._padded(tile.keys), v.width) as loop:
                v.store(b.zero(v.vector_type), self.scores, [row, loop.index])

    def _rescale(self, row: Scalar, o: Buffer, columns: int) -> None:
        b, v = self.b, self.v
        factor = v.broadcast(b.load(self.statistics.factor, [row]))
        with b.loop(0, v.groups(columns, v.width)) as group:
            at = [row, group.index * v.width]
            v.store(b.multiply(v.load(o, at, v.width), factor), o, at)

    def _reduced(
        self,
        row: Scalar,
        count: Number,
        combine: Callable[[Value, Value], Value],
        start: Value,
        make: Callable[[Value, list[Number]], Value],
    ) -> Value:
        """The reduction by `combine` of the results of `make` for each vector of the row's scores
        and its indices. `count` is a multiple of the vector width."""
        b, v = self.b, self.v
        at_once = _CHAINS * v.width
        whole = v.whole(count, at_once)
        chains = [start] * _CHAINS
        for first, last, vectors in ((0, whole, _CHAINS), (whole, count, 1)):
            with b.loop(first, last, vectors * v.width, chains[:vectors]) as loop:
                places: list[list[Number]] = [
                    [row, loop.index + i * v.width] for i in range(vectors)
                ]
                made = [make(v.load(self.scores, at, v.width), at) for at in places]
                loop.next([combine(*both) for both in zip(made, loop.carried, strict=True)])
            chains[:vectors] = loop.results
        return v.reduced(combine, _pairs(combine, chains))

    # --- Arithmetic ----------------------------------------------------------------------------

    def _is_empty(self, largest: Value) -> Scalar:
        infinity = self.b.constant(-math.inf, self.v.type)
        return Scalar(self.b.compare_floats("oeq", largest, infinity))

    def _shift(self, largest: Value) -> Value:
        return self.b.select(self._is_empty(largest), self.b.zero(self.v.type), largest)

    def _scaled(self, difference: Value) -> Value:
        if self.mask_of is not None:
            return difference
        return self.b.multiply(difference, self.b.constant(self.scale, difference.type))

    def _plus(self, left: Value, right: Value) -> Value:
        return self.b.op("arith.addf", [left, right], left.type)

    def _minus(self, left: Value, right: Value) -> Value:
        return self.b.op("arith.subf", [left, right], left.type)

    def _exp(self, power: Value) -> Value:
        return self.b.op("math.exp", [power], power.type)


def _pairs(combine: Callable[[Value, Value], Value], values: list[Value]) -> Value:
    """The values combined, pairing the two halves in each step."""
    while len(values) > 1:
        half = len(values) // 2
        values = [combine(*pair) for pair in zip(values[:half], values[half:], strict=True)]
    return values[0]
