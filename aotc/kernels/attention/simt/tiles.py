"""Tile sizes of the f32 attention kernel, layouts in shared memory, and each thread's elements.

The 32 lanes of a warp form 32 / `lanes_per_row` rows of `lanes_per_row` lanes. A lane computes the
scores of `rows` rows and every `lanes_per_row`-th key, and groups of adjacent columns of the same
rows of O. So the scores and sums of a row are in one warp.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from aotc.builder.numbers import Number
from aotc.chips import WARP

# Elements of f32 in the widest access, 16 bytes.
GROUP = 4
_BYTES = 4
# Shared memory has 8 groups of banks of 16 bytes each. With a pitch of an odd number of 16 bytes,
# consecutive rows begin in all of them.
_PADDING = GROUP
# Elements of a row of Q that consecutive threads copy: 32 bytes are the smallest access to memory,
# and transposed they are in different banks.
RUN = 8
# The bits of a lane's number that make its row, and those that make its column, by `lanes_per_row`:
# shared memory serves 16 lanes at once if all pairs of lanes that differ in the lowest bit, or all
# that differ in the next one, read the same address.
BITS = {4: ((1, 2, 4), (0, 3)), 8: ((1, 4), (0, 2, 3)), 16: ((1,), (0, 2, 3, 4))}


class Variant(Struct, frozen=True):
    """Parameters of a kernel. `warps`: the warps of a block. `rows`: the rows of a thread.
    `lanes_per_row`: the lanes of a warp that share a row of scores. `keys`: the keys of a tile of K
    and V. `steps`: the Q·Kᵀ loop advances 4 * steps columns of head_dim per iteration."""

    warps: int = 4
    rows: int = 8
    lanes_per_row: int = 8
    keys: int = 64
    steps: int = 2

    @property
    def lane_rows(self) -> int:
        return WARP // self.lanes_per_row

    @property
    def warp_rows(self) -> int:
        return self.lane_rows * self.rows

    @property
    def m(self) -> int:
        """The rows of a tile."""
        return self.warps * self.warp_rows

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def thread_keys(self) -> int:
        return self.keys // self.lanes_per_row

    @property
    def key_group(self) -> int:
        """The number of a thread's keys that are adjacent where P is in shared memory."""
        return min(GROUP, self.thread_keys)


class Tile(Struct, frozen=True):
    """A matrix in shared memory. `offset` is in bytes, the others in elements."""

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
    """The tiles in shared memory: Q transposed (head_dim x m), K and V (keys x head_dim), and P
    (m x keys), whose keys are in the order of the threads.

    A 16-byte read fills four registers, which alternate between two register banks. As Q is
    transposed, the four are rows of the scores (for V, columns of O) and not steps of the sum: so
    a multiply-add's accumulator, and the factor that changes from one multiply-add to the next, can
    be in different banks.
    """

    q: Tile
    k: Tile
    v: Tile
    p: Tile

    @staticmethod
    def of(variant: Variant, head_dim: int) -> Tiles:
        q = Tile(0, head_dim, variant.m, _PADDING)
        k = Tile(q.end, variant.keys, head_dim, _PADDING)
        # V is read along its rows, without bank conflicts.
        v = Tile(k.end, variant.keys, head_dim, 0)
        return Tiles(q, k, v, Tile(v.end, variant.m, variant.keys, _PADDING))

    @property
    def bytes(self) -> int:
        return self.p.end


def is_possible(variant: Variant, head_dim: int) -> bool:
    return (
        variant.lanes_per_row in BITS
        and variant.rows % GROUP == 0
        and variant.thread_keys in (1, 2, 4, 8, 16)
        and variant.thread_keys * variant.lanes_per_row == variant.keys
        and variant.warps in (1, 2, 4, 8, 16, 32)
        and head_dim % RUN == 0
        and head_dim % variant.lanes_per_row == 0
        and head_dim % (GROUP * variant.steps) == 0
        and variant.m % (variant.threads // RUN) == 0
    )


def lanes_of_copy(head_dim: int, width: int) -> int:
    """The number of threads that copy a row, `width` elements at once: a power of two."""
    pieces = head_dim // width
    return min(pieces & -pieces, WARP if width == 1 else WARP // 2)


def rows_of_copy(variant: Variant, head_dim: int, width: int = GROUP) -> int:
    """The number of rows that a block's threads copy at once."""
    return variant.threads // lanes_of_copy(head_dim, width)


def column_groups(variant: Variant, head_dim: int) -> Iterator[tuple[int, int]]:
    """A thread's groups of columns of O: the first column of each group of a row's lanes, and the
    width of a lane's group."""
    first = 0
    width = GROUP
    while first < head_dim:
        while first + width * variant.lanes_per_row > head_dim:
            width //= 2
        yield first, width
        first += width * variant.lanes_per_row


def lane_place(lane: Number, lanes_per_row: int) -> tuple[Number, Number]:
    """The row and column of a lane among its warp's lanes."""
    row, column = (
        sum(((lane // (1 << bit) % 2) * (1 << digit) for digit, bit in enumerate(bits)), 0)
        for bits in BITS[lanes_per_row]
    )
    return row, column


def row_offsets(variant: Variant) -> list[int]:
    """A thread's rows, relative to its first one, which is 4 times its lane's row. The rows of
    lanes that read at once thus begin in different banks."""
    return [
        number % GROUP + GROUP * variant.lane_rows * (number // GROUP)
        for number in range(variant.rows)
    ]
