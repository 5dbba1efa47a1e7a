"""The online softmax of scores in registers (Milakov and Gimelshein), in f32.

A thread has some rows, and in each some keys. The lanes of a row agree on the row's largest score,
while each keeps the sum over its own keys until the end. P is exp2(unit · s - unit · max), with
unit = scale · log2(e). The argument is one multiply-add, rounded once, which is at least as
accurate as exp(scale · s - scale · max) with its three roundings. `ex2.approx` is within 2 units in
the last place (PTX manual).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aotc.builder import Builder
from aotc.builder.numbers import Float, Scalar, compare, fma, maximum_number
from aotc.kernels.attention.arithmetic import (
    LOG2_E,
    exp2,
    minus_infinity,
    unless_empty,
)
from aotc.kernels.attention.masks import masked
from aotc.kernels.attention.problem import Mask


class Softmax:
    """The softmax of scores times `scale`. With a mask, `add_mask` multiplies the scores and adds
    the mask before.

    A row's state is the largest score, times `_unit` unless there is a mask, and this thread's sum.
    """

    def __init__(
        self, b: Builder, scale: float, lane_bits: Sequence[int], mask: Mask | None
    ) -> None:
        """`lane_bits`: the bits of a lane's number that distinguish the lanes of a row."""
        self.b, self.scale, self.mask = b, scale, mask
        self.lane_bits = lane_bits

    def add_mask(self, score: Float, element: Float) -> Float:
        return masked(self.b, self.mask, score, self.scale, element)

    def mask_keys(self, scores: Sequence[Float], end: Scalar, stride: int) -> list[Float]:
        """The scores of a row, -infinity for keys from `end` on (a signed i32, relative to the
        thread's first key). Consecutive scores are `stride` keys apart."""
        least = minus_infinity(self.b)
        return [
            self.b.select(compare("sgt", end, stride * number), score, least)
            for number, score in enumerate(scores)
        ]

    def update(
        self, scores: Sequence[Float], row_max: Float, row_sum: Float
    ) -> tuple[list[Float], Float, Float, Float]:
        """P of a row's scores, the row's updated state, and the factor that rescales the previous
        accumulators.

        From a row whose scores are all -infinity, 0 is subtracted, so that P is 0, not NaN. A NaN
        is ignored by the maximum, but its P, and thus the sum, is NaN.
        """
        b = self.b
        largest = self._row_max(scores)
        if self.mask is None:
            largest = largest * self._unit()
        largest = maximum_number(largest, row_max)
        shift = unless_empty(b, largest, largest)
        # The same value is subtracted from all scores of a row and from the previous maximum, so
        # its rounding does not matter.
        rescale = self.exp2(self._in_units(row_max - shift))
        p = [self._probability(score, shift) for score in scores]
        return p, largest, row_sum * rescale + _tree(Float.__add__, p), rescale

    def inverse_sum(self, row_max: Float, row_sum: Float, *, empty_is_zero: bool) -> Float:
        """1 / the sum of a row, over all its threads. With `empty_is_zero`, it is 0 for a row whose
        scores are all -infinity, and whose sum is 0."""
        b = self.b
        for bit in self.lane_bits:
            row_sum = b.add(row_sum, b.shuffle_xor(row_sum, 1 << bit))
        inverse: Float = b.constant(1, "f32") / row_sum
        return unless_empty(b, row_max, inverse) if empty_is_zero else inverse

    def exp2(self, power: Float) -> Float:
        return exp2(self.b, power)

    def _unit(self) -> Float:
        found: Float = self.b.constant(self.scale * LOG2_E, "f32")
        return found

    def _in_units(self, difference: Float) -> Float:
        return difference * self.b.constant(LOG2_E, "f32") if self.mask is not None else difference

    def _probability(self, score: Float, shift: Float) -> Float:
        if self.mask is not None:
            # A mask may have the lowest finite number, which times log2(e) would be -infinity.
            return self.exp2(self._in_units(score - shift))
        return self.exp2(fma(score, self._unit(), -shift))

    def _row_max(self, scores: Sequence[Float]) -> Float:
        """The largest score over all lanes of the row."""
        largest = _tree(maximum_number, scores)
        for bit in self.lane_bits:
            largest = maximum_number(largest, self.b.shuffle_xor(largest, 1 << bit))
        return largest


def _tree(combine: Callable[[Float, Float], Float], values: Sequence[Float]) -> Float:
    rest = list(values)
    while len(rest) > 1:
        first, second, *rest = rest
        rest.append(combine(first, second))
    return rest[0]
