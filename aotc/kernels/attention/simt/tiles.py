"""Sizes of the kernel of attention in f32: how tiles lie in shared memory, and whose what is.

The lanes of a warp are `across` columns and 32 / across rows. A lane's part of scores is `rows`
rows and every `across`-th key; of O the same rows, and groups of neighbouring columns. So a row's
scores and sums are in one warp.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from aotc.chips import WARP
from aotc.numbers import Number

# Elements of f32 that an access has at most, 16 bytes.
GROUP = 4
_BYTES = 4
# Shared memory has 8 places for 16 bytes. Rows begin in all of them where a row and its padding
# are an odd number of those.
_PADDING = GROUP
# Of Q threads that follow each other copy so many elements of a row: 32 bytes are what memory gives
# at least, and turned they are in different banks.
RUN = 8
# Which bits of a lane's number are its row, and which its column, by `across`: shared memory serves
# 16 lanes at once where each two that differ in the lowest bit read the same, or each two that
# differ in the next one.
BITS = {4: ((1, 2, 4), (0, 3)), 8: ((1, 4), (0, 2, 3)), 16: ((1,), (0, 2, 3, 4))}


class Variant(Struct, frozen=True):
    """`warps` of a block, `rows` and `across` of a thread and a warp, `keys` of a block of K and V;
    `steps`: times 4 columns of Q and K that a turn of the inner loop multiplies."""

    warps: int = 4
    rows: int = 8
    across: int = 8
    keys: int = 64
    steps: int = 2

    @property
    def down(self) -> int:
        return WARP // self.across

    @property
    def warp_rows(self) -> int:
        return self.down * self.rows

    @property
    def m(self) -> int:
        """Rows of a tile."""
        return self.warps * self.warp_rows

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def thread_keys(self) -> int:
        return self.keys // self.across

    @property
    def key_group(self) -> int:
        """How many of a thread's keys are beside each other where P is in shared memory."""
        return min(GROUP, self.thread_keys)


class Tile(Struct, frozen=True):
    """A matrix in shared memory: `offset` in bytes."""

    offset: int
    rows: int
    columns: int
    padding: int

    @property
    def bytes(self) -> int:
        return self.rows * self.pitch * _BYTES

    @property
    def pitch(self) -> int:
        return self.columns + self.padding

    @property
    def end(self) -> int:
        return self.offset + self.bytes


class Tiles(Struct, frozen=True):
    """Q turned, a row for each column; K, V, and P, whose keys are in the order of threads.

    So a multiply-add's sum and that one of its factors that is another in the next one may be in
    different banks of registers: the four of a wide read are in both, by turns, and go along rows
    of scores, or columns of O. (Of Q as it is, they would go along what is summed over.)
    """

    q: Tile
    k: Tile
    v: Tile
    p: Tile

    @staticmethod
    def of(variant: Variant, head_dim: int) -> Tiles:
        q = Tile(0, head_dim, variant.m, _PADDING)
        k = Tile(q.end, variant.keys, head_dim, _PADDING)
        # V's rows are read along: there nothing is in the same bank.
        v = Tile(k.end, variant.keys, head_dim, 0)
        return Tiles(q, k, v, Tile(v.end, variant.m, variant.keys, _PADDING))

    @property
    def bytes(self) -> int:
        return self.p.end


def is_possible(variant: Variant, head_dim: int) -> bool:
    return (
        variant.across in BITS
        and variant.rows % GROUP == 0
        and variant.thread_keys in (1, 2, 4, 8, 16)
        and variant.thread_keys * variant.across == variant.keys
        and variant.warps in (1, 2, 4, 8, 16, 32)
        and head_dim % RUN == 0
        and head_dim % variant.across == 0
        and head_dim % (GROUP * variant.steps) == 0
        and variant.m % (variant.threads // RUN) == 0
    )


def lanes_of_copy(head_dim: int, width: int) -> int:
    """How many threads copy a row, `width` elements at once: a power of two."""
    pieces = head_dim // width
    return min(pieces & -pieces, WARP if width == 1 else WARP // 2)


def rows_of_copy(variant: Variant, head_dim: int, width: int = GROUP) -> int:
    """How many rows a block's threads copy at once."""
    return variant.threads // lanes_of_copy(head_dim, width)


def column_groups(variant: Variant, head_dim: int) -> Iterator[tuple[int, int]]:
    """A thread's groups of columns of O: where those of all lanes begin, and how wide each is."""
    first = 0
    width = GROUP
    while first < head_dim:
        while first + width * variant.across > head_dim:
            width //= 2
        yield first, width
        first += width * variant.across


def lane_place(lane: Number, across: int) -> tuple[Number, Number]:
    """A lane's row and column."""
    row, column = (
        sum(((lane // (1 << bit) % 2) * (1 << digit) for digit, bit in enumerate(bits)), 0)
        for bits in BITS[across]
    )
    return row, column


def row_offsets(variant: Variant) -> list[int]:
    """A thread's rows, from its first one on, which is 4 times its lane's row: so rows of lanes
    that read at once begin in different places of shared memory."""
    return [
        number % GROUP + GROUP * variant.down * (number // GROUP) for number in range(variant.rows)
    ]
