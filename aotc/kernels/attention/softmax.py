"""The softmax of a kernel's scores, block by block of keys, in registers (Milakov and Gimelshein).

A thread of a warpgroup has of 64 rows of scores, as wgmma leaves them, two rows; of 8 columns two
neighbours in each. For each row it keeps the largest score that was seen, and the sum of its own
columns' exp(score - largest). Four neighbouring threads share a row, and agree on the largest one.
"""

from __future__ import annotations

import math

from msgspec import Struct

from aotc.kernels.matmul.wgmma.tiles import Body

_MINUS_INFINITY = "0xFF800000"


class Rows(Struct, frozen=True):
    """Of this thread's two rows: the largest scores, and the sums."""

    largest: tuple[str, str]
    sums: tuple[str, str]


class Softmax:
    """Writes it for scores that are multiplied by `scale`, into values of `element` (f16, bf16)."""

    def __init__(self, e: Body, scale: float, element: str, *, masked: bool) -> None:
        """`masked`: scores come with a mask (`with_mask`), and are scaled by that."""
        self.e, self.element, self.masked = e, element, masked
        self.scale = scale

    def begin(self, lane: str) -> None:
        e = self.e
        self.scale_value = e.constant(repr(self.scale), "f32")
        # exp(scale * x) = exp2(factor * x)
        factor = (1.0 if self.masked else self.scale) * math.log2(math.e)
        self.factor = e.constant(repr(factor), "f32")
        # This thread's first column of 8, and its first row of 16.
        self.column = e.do("shli", e.do("andi", lane, 3), 1)
        self.row = e.do("shrui", lane, 2)

    def nothing(self) -> Rows:
        """Before the first block."""
        e = self.e
        least = e.constant(_MINUS_INFINITY, "f32")
        zero = e.constant("0.0", "f32")
        return Rows((least, least), (zero, zero))

    def with_mask(self, scores: list[str], mask: list[str]) -> list[str]:
        """scale * score + mask."""
        return [
            self.e.value(f"math.fma {score}, {self.scale_value}, {one} : f32")
            for score, one in zip(scores, mask, strict=True)
        ]

    def hide(self, scores: list[str], ends: tuple[str, str]) -> list[str]:
        """Scores of columns from `ends` on, of this thread's two rows, counted from the block's
        first one (signed), become -infinity."""
        e = self.e
        least = e.constant(_MINUS_INFINITY, "f32")
        own = [e.do("subi", end, self.column) for end in ends]
        hidden = []
        for number, score in enumerate(scores):
            group, place = divmod(number, 4)
            half, side = divmod(place, 2)
            is_seen = e.compare("sgt", own[half], 8 * group + side)
            hidden.append(e.value(f"arith.select {is_seen}, {score}, {least} : f32"))
        return hidden

    def add(self, scores: list[str], before: Rows) -> tuple[list[str], Rows, tuple[str, str]]:
        """exp(score - largest) of a block; the rows with it; and for each row the factor for what
        was summed before.

        A row of -infinity alone has 0 taken from it: its terms are 0, not NaN. A NaN is no maximum
        but makes its term, and so the sum, NaN.
        """
        e = self.e
        terms = list(scores)
        largest, sums, factors = [], [], []
        for half in range(2):
            numbers = [i for i in range(len(scores)) if i % 4 // 2 == half]
            highest = self._highest([scores[i] for i in numbers], before.largest[half])
            least, zero = e.constant(_MINUS_INFINITY, "f32"), e.constant("0.0", "f32")
            is_none = e.value(f"arith.cmpf oeq, {highest}, {least} : f32")
            taken = e.value(f"arith.select {is_none}, {zero}, {highest} : f32")
            if not self.masked:
                taken = e.value(f"arith.mulf {taken}, {self.factor} : f32")
            taken = e.value(f"arith.negf {taken} : f32")
            factor = self._exp(before.largest[half], taken)
            for i in numbers:
                terms[i] = self._exp(scores[i], taken)
            sum_ = e.value(f"arith.mulf {before.sums[half]}, {factor} : f32")
            total = self._total([terms[i] for i in numbers])
            largest.append(highest)
            sums.append(e.value(f"arith.addf {sum_}, {total} : f32"))
            factors.append(factor)
        rows = Rows((largest[0], largest[1]), (sums[0], sums[1]))
        return terms, rows, (factors[0], factors[1])

    def words(self, terms: list[str]) -> list[str]:
        """Terms as the A of wgmmas, four words for every 16 columns."""
        kind = {"f16": "f16x2", "bf16": "bf16x2"}[self.element]
        return [
            self.e.value(
                f'llvm.inline_asm asm_dialect = att "cvt.rn.{kind}.f32 $0, $1, $2;", "=r,f,f" '
                f"{terms[i + 1]}, {terms[i]} : (f32, f32) -> i32"
            )
            for i in range(0, len(terms), 2)
        ]

    def scaled(self, sums: list[str], factors: tuple[str, str]) -> list[str]:
        """Sums of O's rows, times their row's factor."""
        return [
            self.e.value(f"arith.mulf {value}, {factors[i % 4 // 2]} : f32")
            for i, value in enumerate(sums)
        ]

    def inverses(self, rows: Rows, *, masked_are_zero: bool) -> tuple[str, str]:
        """1 / the sum of each row, of all its threads; `masked_are_zero`: 0 for a row of -infinity
        alone, whose sum is 0."""
        e = self.e
        found = []
        for largest, sum_ in zip(rows.largest, rows.sums, strict=True):
            for distance in (1, 2):
                sum_ = e.value(f"arith.addf {sum_}, {self._neighbour(sum_, distance)} : f32")
            one = e.constant("1.0", "f32")
            inverse = e.value(f"arith.divf {one}, {sum_} : f32")
            if masked_are_zero:
                least, zero = e.constant(_MINUS_INFINITY, "f32"), e.constant("0.0", "f32")
                is_none = e.value(f"arith.cmpf oeq, {largest}, {least} : f32")
                inverse = e.value(f"arith.select {is_none}, {zero}, {inverse} : f32")
            found.append(inverse)
        return found[0], found[1]

    def _highest(self, scores: list[str], before: str) -> str:
        e = self.e
        # Some chains, for none to wait for itself.
        chains = [before, *scores[:3]]
        for i, score in enumerate(scores[3:]):
            place = i % len(chains)
            chains[place] = e.value(f"arith.maxnumf {chains[place]}, {score} : f32")
        while len(chains) > 1:
            first, second, *chains = chains
            chains.append(e.value(f"arith.maxnumf {first}, {second} : f32"))
        (highest,) = chains
        for distance in (1, 2):
            other = self._neighbour(highest, distance)
            highest = e.value(f"arith.maxnumf {highest}, {other} : f32")
        return highest

    def _total(self, terms: list[str]) -> str:
        e = self.e
        chains = terms[:4]
        for i, term in enumerate(terms[4:]):
            chains[i % 4] = e.value(f"arith.addf {chains[i % 4]}, {term} : f32")
        while len(chains) > 1:
            first, second, *chains = chains
            chains.append(e.value(f"arith.addf {first}, {second} : f32"))
        return chains[0]

    def _exp(self, score: str, taken: str) -> str:
        """exp2(score * factor + taken); of scores with a mask, exp2((score + taken) * factor), as
        that may have the least number there is, which times the factor would be -infinity."""
        e = self.e
        if self.masked:
            difference = e.value(f"arith.addf {score}, {taken} : f32")
            power = e.value(f"arith.mulf {difference}, {self.factor} : f32")
        else:
            power = e.value(f"math.fma {score}, {self.factor}, {taken} : f32")
        return e.value(
            f'llvm.inline_asm asm_dialect = att "ex2.approx.ftz.f32 $0, $1;", "=f,f" {power} '
            ": (f32) -> f32"
        )

    def _neighbour(self, value: str, distance: int) -> str:
        e = self.e
        everyone, by, last = (e.constant(number, "i32") for number in (-1, distance, 31))
        return e.value(f"nvvm.shfl.sync bfly {everyone}, {value}, {by}, {last} : f32 -> f32")
