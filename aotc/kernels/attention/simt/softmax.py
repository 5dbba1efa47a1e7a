"""The softmax of scores in registers, block by block of keys (Milakov and Gimelshein), in f32.

A thread has some rows, and of each some keys; the `across` lanes of a row agree on its largest
score, while each keeps the sum of its own keys' terms until the end. Terms are exp2 of what a score
is below the largest one, in units of 1 / log2(e): of scores that are multiplied by the scale, one
multiply-add each, rounded once, which is at least as near as exp(scale · s - scale · max) with its
three roundings. `ex2.approx` is within 2 units in the last place (PTX manual).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from aotc.kernels.writer import Writer

_MINUS_INFINITY = "0xFF800000"


class Rows(Struct, frozen=True):
    """Of each row: the largest score, in the unit of `Softmax`, and this thread's sum."""

    largest: list[str]
    sums: list[str]


class Softmax:
    """Writes it for scores that are to be multiplied by `scale`; `masked`: they come with a mask,
    and multiplied (`with_mask`)."""

    def __init__(
        self, w: Writer, scale: float, across_bits: Sequence[int], *, masked: bool
    ) -> None:
        """`across_bits`: of a lane's number, which tell the lanes of a row apart."""
        self.w, self.scale, self.masked = w, scale, masked
        self.across_bits = across_bits

    def nothing(self, rows: int) -> Rows:
        """Before the first block."""
        w = self.w
        least, zero = w.constant(_MINUS_INFINITY, "f32"), w.zero("f32")
        return Rows([least] * rows, [zero] * rows)

    def with_mask(self, score: str, mask: str) -> str:
        scale = self.w.constant(repr(self.scale), "f32")
        return self.w.value(f"math.fma {score}, {scale}, {mask} : f32")

    def hide(self, scores: Sequence[str], ends: str, across: int) -> list[str]:
        """Of a row, whose keys are `across` apart, those from `ends` on (an i32, signed, counted
        from the thread's first key) become -infinity."""
        w = self.w
        least = w.constant(_MINUS_INFINITY, "f32")
        hidden = []
        for number, score in enumerate(scores):
            place = w.constant(across * number, "i32")
            is_seen = w.value(f"arith.cmpi sgt, {ends}, {place} : i32")
            hidden.append(w.value(f"arith.select {is_seen}, {score}, {least} : f32"))
        return hidden

    def add(
        self, scores: Sequence[str], largest: str, sum_: str
    ) -> tuple[list[str], str, str, str]:
        """A row's terms, its largest score and its sum with them, and the factor for what was
        summed before.

        A row of -infinity alone has 0 taken from it: its terms are 0, not NaN. A NaN is no maximum
        but makes its term, and so the sum, NaN.
        """
        w = self.w
        highest = self._highest(scores)
        if not self.masked:
            highest = w.value(f"arith.mulf {highest}, {self._factor()} : f32")
        highest = w.value(f"arith.maxnumf {highest}, {largest} : f32")
        least, zero = w.constant(_MINUS_INFINITY, "f32"), w.zero("f32")
        is_none = w.value(f"arith.cmpf oeq, {highest}, {least} : f32")
        taken = w.value(f"arith.select {is_none}, {zero}, {highest} : f32")
        # The same is taken from all scores of a row, and from what was taken before: how it was
        # rounded is of no meaning.
        before = w.value(f"arith.subf {largest}, {taken} : f32")
        factor = self.exp2(self._in_units(before))
        terms = [self._term(score, taken) for score in scores]
        sum_ = w.value(f"arith.mulf {sum_}, {factor} : f32")
        sum_ = w.value(f"arith.addf {sum_}, {self._total(terms)} : f32")
        return terms, highest, sum_, factor

    def inverse(self, largest: str, sum_: str, *, masked_is_zero: bool) -> str:
        """1 / the sum of a row, of all its threads; `masked_is_zero`: 0 for a row of -infinity
        alone, whose sum is 0."""
        w = self.w
        for bit in self.across_bits:
            sum_ = w.sum(sum_, w.shuffle(sum_, 1 << bit, "f32"), "f32")
        inverse = w.value(f"arith.divf {w.constant('1.0', 'f32')}, {sum_} : f32")
        if masked_is_zero:
            least, zero = w.constant(_MINUS_INFINITY, "f32"), w.zero("f32")
            is_none = w.value(f"arith.cmpf oeq, {largest}, {least} : f32")
            inverse = w.value(f"arith.select {is_none}, {zero}, {inverse} : f32")
        return inverse

    def _factor(self) -> str:
        return self.w.constant(repr(self.scale * math.log2(math.e)), "f32")

    def _in_units(self, difference: str) -> str:
        if not self.masked:
            return difference
        unit = self.w.constant(repr(math.log2(math.e)), "f32")
        return self.w.value(f"arith.mulf {difference}, {unit} : f32")

    def _term(self, score: str, taken: str) -> str:
        w = self.w
        if self.masked:
            # A mask may have the least number there is, which times log2(e) would be -infinity.
            return self.exp2(self._in_units(w.value(f"arith.subf {score}, {taken} : f32")))
        least = w.value(f"arith.negf {taken} : f32")
        return self.exp2(w.value(f"math.fma {score}, {self._factor()}, {least} : f32"))

    def exp2(self, power: str) -> str:
        """A GPU's own: 0 where the result would be below the least normal number."""
        return self.w.value(
            f'llvm.inline_asm asm_dialect = att "ex2.approx.ftz.f32 $0, $1;", "=f,f" {power} '
            ": (f32) -> f32"
        )

    def _highest(self, scores: Sequence[str]) -> str:
        """Of all lanes of a row."""
        w = self.w
        highest = _tree(w, "maxnumf", scores)
        for bit in self.across_bits:
            other = w.shuffle(highest, 1 << bit, "f32")
            highest = w.value(f"arith.maxnumf {highest}, {other} : f32")
        return highest

    def _total(self, terms: Sequence[str]) -> str:
        return _tree(self.w, "addf", terms)


def _tree(w: Writer, operation: str, values: Sequence[str]) -> str:
    left = list(values)
    while len(left) > 1:
        first, second, *left = left
        left.append(w.value(f"arith.{operation} {first}, {second} : f32"))
    return left[0]
