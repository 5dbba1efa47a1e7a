"""The mask that is added to scores: the indices of its elements, and its loads by threads.

On Hopper, TMA copies it if possible (`wgmma.mask_tiles`).
"""

from __future__ import annotations

import re

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Float, Number, fma, minimum
from aotc.kernels.attention.operands import KEY, QUERY
from aotc.kernels.attention.problem import Mask


def outer_index(b: Builder, mask: Mask, batch: Number, query: Number) -> list[Number]:
    """The indices of an element of the mask along all dimensions but the last one, which is the
    key's. `batch` is an index or an i32, `query` an index."""
    assert mask.places[-1] == KEY
    return [_index(b, place, batch, query) for place in mask.places[:-1]]


def _index(b: Builder, place: str, batch: Number, query: Number) -> Number:
    if place == QUERY:
        return query
    if place == "0":
        return 0
    for sign, number in re.findall(r"([/%])(\d+)", place):
        batch = batch // int(number) if sign == "/" else batch % int(number)
    return b.index(batch)


def masked(b: Builder, mask: Mask | None, score: Float, scale: float, element: Float) -> Float:
    """A score, times `scale`, with the mask's element applied. All are f32."""
    factor = b.constant(scale, "f32")
    if mask is None or not mask.replaces:
        return fma(score, factor, element)
    is_kept = b.compare_floats("oeq", element, b.zero("f32"))
    found: Float = b.select(is_kept, score * factor, element)
    return found


class MaskReader:
    """Reads the mask of two rows of scores, which are 8 apart, from memory."""

    def __init__(
        self,
        b: Builder,
        mask: Mask,
        buffer: Buffer,
        batch: Number,
        row: Number,
        sizes: tuple[Number, Number],
    ) -> None:
        """`row`: this thread's first row. `sizes`: the numbers of queries and keys. All of them are
        i32."""
        self.b, self.buffer = b, buffer
        queries, self.keys = sizes
        # Rows past the last one are clamped, as they are not stored.
        both, last = (row, row + 8), queries - 1
        rows = [b.index(minimum(one, last)) for one in both]
        self.outer = [outer_index(b, mask, batch, one) for one in rows]

    def read(self, first: Number, count: int) -> list[Float]:
        """The mask of the tile of `count` keys that begins at key `first` (plus the thread's first
        column), in the order of scores."""
        b, last = self.b, self.keys - 1
        found = []
        for group in range(0, count, 8):
            # Keys past the last one are clamped, as they are masked.
            columns = [b.index(minimum(first + (group + side), last)) for side in range(2)]
            for outer in self.outer:
                for column in columns:
                    found.append(b.convert(b.load(self.buffer, [*outer, column]), "f32"))
        return found
