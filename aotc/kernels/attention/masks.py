"""A mask in a kernel, what is added to the scores of a thread: which it reads from memory itself.

On Hopper TMA brings it, where it can (`hopper.mask_tiles`).
"""

from __future__ import annotations

from aotc.kernels.attention.problem import Mask
from aotc.kernels.attention.recognition import BATCH, KEY, QUERY
from aotc.kernels.matmul.problem import convert
from aotc.kernels.matmul.wgmma.tiles import Body


class MaskReader:
    """Reads it from memory for a block of `keys` scores of two rows."""

    def __init__(self, e: Body, mask: Mask, keys: int) -> None:
        self.e, self.mask, self.keys = e, mask, keys

    def begin_tile(self, batch: str, rows: tuple[str, str], sizes: tuple[str, str]) -> None:
        """`rows`: of this thread; `sizes`: how many queries and keys there are."""
        e = self.e
        queries, self.key_count = sizes
        last = e.do("subi", queries, 1)
        # Rows behind the last one are not stored.
        self.rows = [e.index(e.do("minui", row, last)) for row in rows]
        self.outer = [
            [place_of(e, place, batch, row) for place in self.mask.places[:-1]] for row in self.rows
        ]

    def read(self, first: str) -> list[str]:
        """Of the block that begins with key `first` (plus the thread's own first column), in the
        order of scores."""
        e, mask = self.e, self.mask
        assert mask.places[-1] == KEY
        last = e.do("subi", self.key_count, 1)
        found = []
        for group in range(0, self.keys, 8):
            # Keys behind the last one are hidden.
            columns = [
                e.index(e.do("minui", e.do("addi", first, group + side), last)) for side in range(2)
            ]
            for outer in self.outer:
                for column in columns:
                    at = ", ".join([*outer, column])
                    value = e.value(f"memref.load %m[{at}] : {mask.type}")
                    found.append(convert(e, value, mask.element, "f32"))
        return found


def place_of(e: Body, place: str, batch: str, row: str) -> str:
    """An index, of a batch (an i32) and a row (an index)."""
    if place == QUERY:
        return row
    if place == "0":
        return e.constant(0)
    if place == BATCH:
        return e.index(batch)
    sign, number = place[len(BATCH)], int(place[len(BATCH) + 1 :])
    return e.index(e.do("divui" if sign == "/" else "remui", batch, number))
