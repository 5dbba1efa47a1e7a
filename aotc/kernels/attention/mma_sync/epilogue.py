"""The epilogue: stores a warp's rows of O, staged in shared memory if possible.

Each warp overwrites its own rows of Q in shared memory, which no other warp reads. A lane then
stores as many bytes at once as it copied of Q. If O has another type than Q, or is not aligned to
them, a lane stores its pairs of adjacent elements directly.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Float, Number, Scalar, Value, compare
from aotc.chips import WARP
from aotc.kernels.attention.mma_sync.operands import Operand
from aotc.kernels.attention.mma_sync.tiles import TILE
from aotc.kernels.attention.problem import Attention
from aotc.kernels.matmul.problem import ELEMENT_BYTES

_ALIGNMENT = 16
_ALL_LANES = -1


class Place(Struct, frozen=True):
    """A warp's position: the batch index, which includes heads, its first row in the matrix and in
    the block's tile, and the number of rows of the matrix. All are i32."""

    batch: Number
    row: Number
    row_in_tile: Number
    queries: Number


class Epilogue:
    """Stores a warp's rows of O. A lane has two of each 16 rows, 8 apart, and in each two adjacent
    columns of each 8; the first ones are `row` and `column`."""

    def __init__(self, b: Builder, problem: Attention, o: Buffer, q: Operand, place: Place) -> None:
        self.b, self.o, self.q, self.place = b, o, q, place
        self.head_dim, self.alignment = problem.head_dim or 0, problem.o.alignment
        # The bytes of a store to global memory, as of a copy from it.
        self.store_bytes = q.chunk * ELEMENT_BYTES[q.matrix.element]
        is_aligned = self.alignment % self.store_bytes == 0
        self.is_staged = is_aligned and o.element == q.matrix.element
        batch: Number = place.batch
        first: Number = 0
        if problem.heads[3]:
            first = batch % problem.heads[3] * self.head_dim
            batch = batch // problem.heads[3]
        self.batch, self.first = b.index(batch), b.index(first)

    def store(
        self, o: Sequence[Sequence[Float]], lane: Scalar, row: Scalar, column: Scalar
    ) -> None:
        """Stores the rows. `o`: this lane's elements of each 16 rows."""
        b, place = self.b, self.place
        for number, tile in enumerate(o):
            values = [b.convert(value, self.o.element) for value in tile]
            for half in range(2):
                own, below = values[2 * half :], row + (TILE * number + 8 * half)
                if self.is_staged:
                    at = [0, b.index(place.row_in_tile + below)]
                    self._store_pairs(own, self.q.ring, at, b.index(column), column, _ALIGNMENT)
                    continue
                at_row = place.row + below
                with b.where(compare("ult", at_row, place.queries)):
                    to = self.first + b.index(column)
                    at = [self.batch, b.index(at_row)]
                    self._store_pairs(own, self.o, at, to, column, self.alignment)
        if self.is_staged:
            b.op("nvvm.bar.warp.sync", [b.constant(_ALL_LANES, "i32")])
            self._store_staged(TILE * len(o), lane)

    def _store_pairs(
        self,
        values: Sequence[Value],
        buffer: Buffer,
        at: Sequence[Number],
        first: Number,
        column: Scalar,
        alignment: int,
    ) -> None:
        """Stores two of every four values, at columns from `first` on. `column`: the first column
        of the head."""
        alignment = min(2 * buffer.element_bytes, alignment)
        whole = self.head_dim // 8
        for group in range(whole):
            self._store_pair(values, group, buffer, [*at, first + 8 * group], alignment)
        if rest := self.head_dim % 8:
            # Of the last columns of shared memory, some are padding.
            with self.b.where(compare("ult", column, rest)):
                self._store_pair(values, whole, buffer, [*at, first + 8 * whole], alignment)

    def _store_pair(
        self,
        values: Sequence[Value],
        group: int,
        buffer: Buffer,
        at: Sequence[Number],
        alignment: int,
    ) -> None:
        pair = values[4 * group : 4 * group + 2]
        vector = self.b.from_elements(pair, f"vector<2x{buffer.element}>")
        self.b.store_vector(vector, buffer, at, alignment)

    def _store_staged(self, rows: int, lane: Scalar) -> None:
        b, place = self.b, self.place
        chunk = self.q.chunk
        chunks = self.head_dim // chunk
        width = min(chunks & -chunks, WARP)
        rows_at_once = WARP // width
        own_row = lane // width
        own_column = b.index(lane % width * chunk)
        for first in range(0, rows, rows_at_once):
            below = own_row + first
            row = place.row + below
            is_valid = compare("ult", row, place.queries)
            if rows_at_once > rows:
                is_valid = is_valid & compare("ult", own_row, rows)
            with b.where(is_valid):
                staged = b.index(place.row_in_tile + below)
                for number in range(chunks // width):
                    column = own_column + number * width * chunk
                    value = b.load_vector(self.q.ring, [0, staged, column], chunk, self.store_bytes)
                    to = self.first + column
                    b.store_vector(value, self.o, [self.batch, b.index(row), to], self.store_bytes)
