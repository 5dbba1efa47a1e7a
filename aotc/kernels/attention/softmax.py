"""The online softmax of scores in registers, tile by tile of keys (Milakov and Gimelshein).

A warp has 16 rows of scores, in the layout of the tensor cores' accumulators: a thread has two
rows, and in each of them two adjacent elements of each 8 columns. For each row it keeps the largest
score so far, and the sum of exp(score - largest) over its own columns. Four adjacent threads share
a row, and agree on the largest score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from aotc.builder import Builder
from aotc.builder.numbers import Float, Number, Scalar, compare, fma, maximum_number, minimum
from aotc.chips import WARP
from aotc.kernels.attention.arithmetic import (
    LOG2_E,
    exp2,
    minus_infinity,
    unless_empty,
)
from aotc.kernels.attention.masks import masked
from aotc.kernels.attention.problem import Mask
from aotc.kernels.hopper.smem import assembly

_ALL_LANES, _LAST_LANE = -1, WARP - 1


class Rows(Struct, frozen=True):
    """The running maximum and sum of this thread's two rows."""

    row_max: tuple[Float, Float]
    row_sum: tuple[Float, Float]

    @property
    def values(self) -> list[Float]:
        return [*self.row_max, *self.row_sum]

    @staticmethod
    def of(values: Sequence[Float]) -> Rows:
        first, second, third, fourth = values
        return Rows((first, second), (third, fourth))


class Softmax:
    """The softmax of scores times `scale`. With a mask, `add_mask` multiplies the scores and adds
    the mask before. `pack` converts P to type `element` (f16, bf16).

    `row` and `column` are this thread's first row of 16 and its first column of 8.
    """

    def __init__(
        self, b: Builder, scale: float, element: str, lane: Scalar, mask: Mask | None
    ) -> None:
        self.b, self.scale, self.element, self.mask = b, scale, element, mask
        # exp(scale * x) = exp2(unit * x)
        self.unit: Float = b.constant((scale if mask is None else 1.0) * LOG2_E, "f32")
        self.column = (lane & 3) << 1
        self.row = lane >> 2

    def initial_rows(self) -> Rows:
        least, zero = minus_infinity(self.b), self.b.zero("f32")
        return Rows((least, least), (zero, zero))

    def add_mask(self, scores: Sequence[Float], mask: Sequence[Float]) -> list[Float]:
        """The scores, times `scale`, with the elements of the mask applied."""
        b, scale = self.b, self.scale
        pairs = zip(scores, mask, strict=True)
        return [masked(b, self.mask, score, scale, element) for score, element in pairs]

    def mask_keys(
        self, scores: Sequence[Float], keys: Number, first: Number, row: Number | None
    ) -> list[Float]:
        """The scores of a tile whose keys begin at `first` (signed), with -infinity for keys past
        the last of `keys`. With causality, `row` is the first of this thread's two rows, and keys
        above the number of their row are masked, too."""
        ends = []
        for below in (0, 8):
            end = keys if row is None else minimum(keys, row + (below + 1))
            ends.append(end - first)
        least = minus_infinity(self.b)
        own = [end - self.column for end in ends]
        masked_scores = []
        for number, score in enumerate(scores):
            group, place = divmod(number, 4)
            half, side = divmod(place, 2)
            is_kept = compare("sgt", own[half], 8 * group + side)
            masked_scores.append(self.b.select(is_kept, score, least))
        return masked_scores

    def update(
        self, scores: Sequence[Float], before: Rows
    ) -> tuple[list[Float], Rows, tuple[Float, Float]]:
        """P = exp(score - largest) of a tile, the updated rows, and for each row the factor that
        rescales the previous accumulators.

        From rows whose scores are all -infinity, 0 is subtracted, so that P is 0, not NaN. A NaN is
        ignored by the maximum, but its P, and thus the sum, is NaN.
        """
        b = self.b
        p = list(scores)
        row_max, row_sum, rescale = [], [], []
        for half in range(2):
            own = [i for i in range(len(scores)) if i % 4 // 2 == half]
            largest = self._row_max([scores[i] for i in own], before.row_max[half])
            shift = unless_empty(b, largest, largest)
            shift = -(shift if self.mask is not None else shift * self.unit)
            factor = self._exp(before.row_max[half], shift)
            for i in own:
                p[i] = self._exp(scores[i], shift)
            scaled = before.row_sum[half] * factor
            row_sum.append(scaled + _chains(Float.__add__, [p[i] for i in own]))
            row_max.append(largest)
            rescale.append(factor)
        return p, Rows.of([*row_max, *row_sum]), (rescale[0], rescale[1])

    def pack(self, p: Sequence[Float]) -> list[Scalar]:
        """P as the A fragments of matmuls: i32 values of two elements, four for every 16
        columns."""
        return [self.pack_two(p[i], p[i + 1]) for i in range(0, len(p), 2)]

    def pack_two(self, low: Float, high: Float) -> Scalar:
        kind = {"f16": "f16x2", "bf16": "bf16x2"}[self.element]
        text, words = f"cvt.rn.{kind}.f32 $0, $1, $2;", [high, low]
        made = assembly(self.b, text, "=r,f,f", words, "i32", has_side_effects=False)
        return Scalar(made)

    def rescale(self, o: Sequence[Float], factors: Sequence[Float]) -> list[Float]:
        """The accumulators of O, times their row's factor."""
        return [value * factors[i % 4 // 2] for i, value in enumerate(o)]

    def inverse_row_sums(self, rows: Rows, *, empty_is_zero: bool) -> list[Float]:
        """1 / the sum of each row, over all its threads. With `empty_is_zero`, it is 0 for a row
        whose scores are all -infinity, and whose sum is 0."""
        found = []
        for row_max, row_sum in zip(rows.row_max, rows.row_sum, strict=True):
            inverse = self.b.constant(1, "f32") / self._over_row(Float.__add__, row_sum)
            found.append(unless_empty(self.b, row_max, inverse) if empty_is_zero else inverse)
        return found

    def _row_max(self, scores: Sequence[Float], before: Float) -> Float:
        return self._over_row(maximum_number, _chains(maximum_number, [before, *scores]))

    def _over_row(self, combine: Callable[[Float, Float], Float], value: Float) -> Float:
        """The value combined over the four threads of a row."""
        for distance in (1, 2):
            value = combine(value, self._shuffle(value, distance))
        return value

    def _exp(self, score: Float, shift: Float) -> Float:
        """exp2(score * unit + shift). With a mask, it is exp2((score + shift) * unit), as a mask
        may have the lowest finite number, which times the unit would be -infinity."""
        if self.mask is not None:
            return self.exp2((score + shift) * self.unit)
        return self.exp2(fma(score, self.unit, shift))

    def exp2(self, power: Float) -> Float:
        return exp2(self.b, power)

    def _shuffle(self, value: Float, distance: int) -> Float:
        """The value of the lane whose id differs in the bit `distance`."""
        b = self.b
        lanes, offset, clamp = (
            b.constant(number, "i32") for number in (_ALL_LANES, distance, _LAST_LANE)
        )
        operands = [lanes, value, offset, clamp]
        found: Float = b.op("nvvm.shfl.sync", operands, "f32", kind="#nvvm<shfl_kind bfly>")
        return found


def _chains(combine: Callable[[Float, Float], Float], values: Sequence[Float]) -> Float:
    """The values combined in four independent chains, to hide the latency of each operation."""
    chains = list(values[:4])
    for i, value in enumerate(values[4:]):
        chains[i % 4] = combine(chains[i % 4], value)
    while len(chains) > 1:
        first, second, *chains = chains
        chains.append(combine(first, second))
    return chains[0]
