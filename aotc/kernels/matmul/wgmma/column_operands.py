"""Vectors along C's columns that a kernel of `hopper` reads where it stores, as a bias: a thread's
elements of a piece, all at once and a piece ahead.

Memory that no cache has yet is some 700 ns away. A load in front of each sum would wait for it once
for every 32 bytes.
"""

from __future__ import annotations

from aotc.kernels.matmul.problem import ELEMENT_BYTES, Axis, Extra, Problem
from aotc.kernels.matmul.wgmma.epilogue_operands import Neighbours
from aotc.kernels.matmul.wgmma.tiles import Body


class ColumnExtras:
    """Those of the problem, where two neighbours may be read at once: columns are of pairs."""

    def __init__(self, e: Body, problem: Problem, *, has_pairs: bool) -> None:
        self.e, self.problem = e, problem
        extras = problem.extras if has_pairs else ()
        self.numbers = [i for i, one in enumerate(extras) if self._is_taken(one)]

    def _is_taken(self, extra: Extra) -> bool:
        size = ELEMENT_BYTES.get(extra.element or "")
        is_column = extra.axes == (Axis("column"),)
        return is_column and size is not None and extra.alignment % (2 * size) == 0

    def load(self, column: str, columns: int, lane: str) -> dict[int, Neighbours]:
        """Of a piece of so many columns, which begins at one of C's (an i32)."""
        return {number: self._load(number, column, columns, lane) for number in self.numbers}

    def _load(self, number: int, column: str, columns: int, lane: str) -> Neighbours:
        e, extra, n = self.e, self.problem.extras[number], self.problem.n
        assert n is not None
        size = ELEMENT_BYTES[extra.element or ""]
        pair = f"vector<2x{extra.element}>"
        own = e.do("addi", column, e.do("shli", e.do("andi", lane, 3), 1))
        found = Neighbours()
        for group in range(columns // 8):
            # Behind C's last columns, these.
            at = e.index(e.do("minui", e.do("addi", own, 8 * group), n - 2))
            both = e.value(
                f"vector.load %e{number}[{at}] {{alignment = {2 * size} : i64}} "
                f": {extra.type}, {pair}"
            )
            left, right = (
                e.value(f"vector.extract {both}[{i}] : {extra.element} from {pair}")
                for i in range(2)
            )
            found[group, 0] = found[group, 1] = left, right
        return found
