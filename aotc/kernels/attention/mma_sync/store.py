"""What a warp does with its sums: registers → O, by way of Q's place in shared memory, if it can.

There each warp overwrites the rows of Q that it alone has read, so that a lane stores 16 bytes at
once. Where O is of another type than Q, or not at multiples of 16 bytes, a lane stores the two
neighbours that it has.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from aotc.chips import WARP
from aotc.kernels.attention.mma_sync.operands import CHUNK, Operand
from aotc.kernels.attention.mma_sync.tiles import TILE
from aotc.kernels.attention.problem import Attention
from aotc.kernels.matmul.problem import ELEMENT_BYTES, convert
from aotc.kernels.matmul.wgmma.tiles import Body

_ALIGNMENT = 16


class Place(Struct, frozen=True):
    """Of a warp: the batch, which counts heads; its first row in the matrix, and in the block's
    tile; how many rows the matrix has. i32 values."""

    batch: str
    row: str
    row_in_tile: str
    queries: str


class Store:
    """Writes it for a lane that has of each 16 rows two, 8 apart, and two neighbours of 8 columns;
    the first ones are `row` and `column`."""

    def __init__(self, e: Body, problem: Attention, q: Operand) -> None:
        self.e, self.o, self.q = e, problem.o, q
        self.heads, self.depth = problem.heads[3], problem.depth or 0
        self.element = problem.o.element
        self.is_staged = self.element == q.matrix.element and self.o.alignment % _ALIGNMENT == 0

    def store(
        self, sums: Sequence[Sequence[str]], place: Place, lane: str, own: tuple[str, str]
    ) -> None:
        """`sums`: of each 16 rows; `own`: the lane's row and column."""
        e = self.e
        batch, first = place.batch, e.constant(0, "i32")
        if self.heads:
            first = e.do("muli", e.do("remui", batch, self.heads), self.depth)
            batch = e.do("divui", batch, self.heads)
        self.batch, self.first = e.index(batch), e.index(first)
        row, column = own
        for number, tile in enumerate(sums):
            values = [convert(e, value, "f32", self.element) for value in tile]
            for half in range(2):
                below = e.do("addi", row, TILE * number + 8 * half)
                if self.is_staged:
                    self._stage(values[2 * half :], e.do("addi", place.row_in_tile, below), column)
                    continue
                at = e.do("addi", place.row, below)
                with e.block(f"scf.if {e.compare('ult', at, place.queries)}"):
                    to = e.do("addi", self.first, e.index(column), "index")
                    self._store_pairs(values[2 * half :], f"%c[{self.batch}, {e.index(at)}", to)
        if self.is_staged:
            e.line(f"nvvm.bar.warp.sync {e.constant(-1, 'i32')} : i32")
            self._store_staged(TILE * len(sums), place, lane)

    def _stage(self, values: Sequence[str], row: str, column: str) -> None:
        e = self.e
        at = f"{self.q.ring}[{e.constant(0)}, {e.index(row)}"
        self._store_pairs(values, at, e.index(column), is_staged=True)

    def _store_pairs(
        self, values: Sequence[str], at: str, first: str, *, is_staged: bool = False
    ) -> None:
        """Of every four values two."""
        e, element = self.e, self.element
        pair = f"vector<2x{element}>"
        size = 2 * ELEMENT_BYTES[element]
        bytes_ = size if is_staged else min(size, self.o.alignment)
        type_ = self.q.ring_type if is_staged else self.o.type
        for group in range(self.depth // 8):
            two = ", ".join(values[4 * group : 4 * group + 2])
            vector = e.value(f"vector.from_elements {two} : {pair}")
            column = e.do("addi", first, 8 * group, "index")
            e.line(
                f"vector.store {vector}, {at}, {column}] {{alignment = {bytes_} : i64}} "
                f": {type_}, {pair}"
            )

    def _store_staged(self, rows: int, place: Place, lane: str) -> None:
        e = self.e
        chunks = self.depth // CHUNK
        width = min(chunks & -chunks, WARP)
        rows_at_once = WARP // width
        chunk = f"vector<{CHUNK}x{self.element}> "
        alignment = f"{{alignment = {_ALIGNMENT} : i64}}"
        own_row = e.do("divui", lane, width)
        own_column = e.index(e.do("muli", e.do("remui", lane, width), CHUNK))
        for first in range(0, rows, rows_at_once):
            below = e.do("addi", own_row, first)
            row = e.do("addi", place.row, below)
            is_there = e.compare("ult", row, place.queries)
            if rows_at_once > rows:
                is_own = e.compare("ult", own_row, rows)
                is_there = e.do("andi", is_there, is_own, "i1")
            with e.block(f"scf.if {is_there}"):
                staged = e.index(e.do("addi", place.row_in_tile, below))
                for number in range(chunks // width):
                    column = e.do("addi", own_column, number * width * CHUNK, "index")
                    value = e.value(
                        f"vector.load {self.q.ring}[{e.constant(0)}, {staged}, {column}] "
                        f"{alignment} : {self.q.ring_type}, {chunk}"
                    )
                    to = e.do("addi", self.first, column, "index")
                    e.line(
                        f"vector.store {value}, %c[{self.batch}, {e.index(row)}, {to}] "
                        f"{alignment} : {self.o.type}, {chunk}"
                    )
