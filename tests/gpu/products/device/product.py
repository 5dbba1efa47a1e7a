"""Products of two matrices, in any transposition, in f64."""

from __future__ import annotations

import math
import random
from typing import Any

import float8
import torch
from entry import Draw
from rounding import of_result, of_sums

# Of sizes: how many are 0, and how many depths are long.
_NONE, _LONG = 0.02, 0.1
# M, N and K whose A, B or C have more than 2^31 elements.
HUGE = ((70016, 96, 31008), (96, 70016, 31008), (46376, 46408, 72))


class Trial:
    """A product of random sizes and operands; or of one of _HUGE, whose results are looked at in
    some rows."""

    def __init__(
        self, case: dict[str, Any], rng: random.Random, largest: int, huge: int | None = None
    ) -> None:
        self.case = case
        m, n, k = _sizes(rng, largest) if huge is None else HUGE[huge]
        self.rows: Any = slice(None)
        if huge is not None:
            some = [*range(8), *range(m - 8, m), *(rng.randrange(m) for _ in range(48))]
            self.rows = torch.tensor(some, device="cuda")
        self.shape, self.k = (m, n, k), k
        batch = (rng.choice((1, 2, 3)),) if case["form"] == "batched" else ()
        is_strided = case["form"] == "strided"
        element = case["element"]
        draw = Draw(rng, is_strided=is_strided)
        rows = (m, k) if case["layout"][0] == "n" else (k, m)
        columns = (k, n) if case["layout"][1] == "n" else (n, k)
        a = draw.operand((*batch, *rows), element)
        if is_strided and rng.random() < 0.1:
            a = a[:1].expand(a.shape)  # rows that are one, at a distance of 0
        others = ((n,), (m, n)) if case["form"] == "gelu" else ()
        self.operands = [
            a,
            draw.operand((*batch, *columns), element),
            *(draw.operand(shape, element) for shape in others),
        ]
        self.result = draw.result((*batch, m, n), case["result"])

    def looked_at(self) -> Any:
        """What of the result `expected` has."""
        return self.result.values[..., self.rows, :]

    @staticmethod
    def types(_case: dict[str, Any]) -> None:
        """No size is known."""

    def expected(self) -> list[tuple[Any, Any]]:
        """Each element in f64, and how far the result's may be from it; one of these must be. Sums
        of f8 are exact ones, or those of Hopper's tensor cores, as the kernel is."""
        case = self.case
        a, b, *_ = self.operands
        left = a if case["layout"][0] == "n" else a.mT
        right = b if case["layout"][1] == "n" else b.mT
        left = left[..., self.rows, :]
        found = [left.double() @ right.double()]
        if case["element"].startswith("f8"):
            found.append(float8.sums(left, right).double())
        sums = "f64" if case["result"] == "f64" else "f32"
        bound = of_sums(case, self.k, case["element"], sums)
        bound = bound * (left.double().abs() @ right.double().abs())
        return [self._finished(sums, bound) for sums in found]

    def _finished(self, exact: Any, bound: Any) -> tuple[Any, Any]:
        case = self.case
        if case["form"] == "relu":
            exact = exact.clamp(min=0)
        elif case["form"] == "gelu":
            bias, residual = self.operands[2].double(), self.operands[3][self.rows].double()
            inner = exact * 0.125 + bias
            gelu = inner * 0.5 * (1 + torch.erf(inner * math.sqrt(0.5)))
            exact = gelu + residual
            # The slope of gelu is below 1.13; some operations in f32 follow.
            bound = 1.13 * 0.125 * bound + 2.0**-20 * (1 + inner.abs() + exact.abs())
        return exact, bound + of_result(case["result"], exact)


def _sizes(rng: random.Random, largest: int) -> tuple[int, int, int]:
    """M, N and K: of any magnitude, every second one a multiple of 8, some of them few or none, and
    sometimes a long K."""
    found = []
    for _ in range(3):
        size = rng.randint(1, largest)
        if rng.random() < 0.25:
            size = round(math.exp(rng.uniform(0, math.log(largest))))
        if rng.random() < 0.5:
            size = max(8, size // 8 * 8)
        found.append(0 if rng.random() < _NONE else size)
    m, n, k = found
    if rng.random() < _LONG:
        m, n, k = m // 8, n // 8, k * 8
    return m, n, k
