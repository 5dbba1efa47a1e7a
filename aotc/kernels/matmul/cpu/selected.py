"""A batched matmul for the CPU device that computes only the rows that are read, as of experts.

It is `cpu.blocked`, with tiles of the rows that chose a matrix, which may be any rows.
"""

from __future__ import annotations

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Scalar, compare, select
from aotc.kernels.matmul.cpu import blocked
from aotc.kernels.matmul.cpu.blocked import Tile, Variant
from aotc.kernels.matmul.fusion.selection import RowSelection
from aotc.kernels.matmul.problem import Arguments, Problem

_INDEX_BYTES = 4


def can_implement(problem: Problem) -> bool:
    """Whether rows of A are rows of its buffer."""
    return not problem.a.transposed


class _Selected(blocked.Kernel):
    """The rows of a tile are those in the list `rows_read`."""

    def __init__(
        self, b: Builder, chosen: tuple[Problem, Variant], arguments: Arguments, rows: RowSelection
    ) -> None:
        super().__init__(b, *chosen, arguments.epilogue)
        self.selection, self.chosen = rows, Buffer(rows.chosen)

    def shared_bytes(self, rows: Number) -> Number:
        return super().shared_bytes(rows) + rows * _INDEX_BYTES

    def compute_tile(self, tile: Tile, k: Number, rows: Number) -> None:
        b, shape = self.b, [self.variant.tile_rows]
        start = super().shared_bytes(rows)
        self.rows_read = b.shared_buffer(b.shared_memory(), start, shape, "i32")
        count = self._list_rows(tile)
        with b.where(compare("ne", count, 0)):
            super().compute_tile(Tile(tile.row, tile.column, count, tile.columns), k, rows)

    def _list_rows(self, tile: Tile) -> Scalar:
        """Lists the rows of the tile that chose this block's matrix. Returns their number."""
        b = self.b
        with b.loop(0, tile.rows, 1, [b.constant(0)]) as loop:
            row = tile.row + loop.index
            [count] = loop.carried
            b.store(b.value(b.i32(row), "i32"), self.rows_read, [count])
            is_read = compare("eq", self.selection.matrix(b.load(self.chosen, [row])), self.batch)
            loop.next([count + select(is_read, 1, 0)])
        return Scalar(loop.results[0])

    def row_of(self, tile: Tile, row: Number) -> Number:
        return self.b.index(self.b.load(self.rows_read, [row]))


def insert_selected(
    b: Builder, chosen: tuple[Problem, Variant], arguments: Arguments, rows: RowSelection
) -> None:
    """Inserts the launch of the kernel."""
    _Selected(b, chosen, arguments, rows).build(arguments)
