"""The epilogue of kernels that compute the transpose of C, for C of 16-bit elements.

Each of the four warps of a warpgroup has 16 of its 64 columns of C. Together they write a subtile
of up to 64 rows by 64 columns of C (128 bytes) to shared memory, which one warp stores by TMA."""

from __future__ import annotations

from collections.abc import Sequence

from aotc.builder.numbers import Number, Scalar, Value, compare
from aotc.kernels.hopper.cta import WARPGROUP, Cta
from aotc.kernels.hopper.smem import (
    SWIZZLE_BYTES,
    named_barrier,
    shared_pointer,
    stmatrix,
    unpack,
)
from aotc.kernels.hopper.tiles import Tile
from aotc.kernels.hopper.tma import is_aligned
from aotc.kernels.matmul.problem import Place, Problem
from aotc.kernels.matmul.wgmma.epilogue import TmaStoreEpilogue

_ROWS = 64
_BYTES = _ROWS * SWIZZLE_BYTES
# The named barrier of the first consumer warpgroup, behind those of `ping_pong`.
_BARRIER = 4


def can_store_transpose(problem: Problem) -> bool:
    # A thread would load single elements, in a column, of the matrices that the epilogue reads.
    reads_matrices = any(len(operand.axes) > 1 for operand in problem.epilogue_operands)
    is_stored = problem.c.element in ("f16", "bf16") and is_aligned(problem.c)
    return is_stored and not problem.adds and not reads_matrices


class TransposingEpilogue(TmaStoreEpilogue):
    """Stores tiles of `n` rows of C: a tile's columns are rows of C."""

    def create_tensor_maps(self) -> None:
        """See `TmaStoreEpilogue`. The last subtile of a tile may have fewer rows."""
        for rows in {min(_ROWS, self.n), self.n % _ROWS} - {0}:
            self._create_tensor_map(rows, (rows, self.columns), SWIZZLE_BYTES)

    def begin(self, cta: Cta, offset: Number, sizes: tuple[Scalar, Scalar]) -> None:
        super().begin(cta, offset, sizes)
        # This warp's buffers begin at `offset`, its warpgroup's at those of its first warp.
        self.warp = cta.thread >> 5 & 3
        self.offset = offset - self.warp * self.shared_bytes(1, self.buffers)
        self.barrier: Number = (cta.thread >> 7) + (_BARRIER - 1)
        self.is_first_lane = Scalar(self.is_first_lane & compare("eq", self.warp, 0))

    def prefetch(self, tile: Tile) -> None:
        """Does nothing: adjacent accumulators of a thread are in consecutive rows of C."""

    def store(self, accumulators: Sequence[Value], tile: Tile) -> None:
        """Stores the accumulators. `tile`: the coordinates of the warp's first row of Cᵀ. The rows
        of each further block are 64 below."""
        firsts = range(0, self.n, _ROWS)
        is_odd = len(accumulators) * len(firsts) % self.buffers != 0
        own = self.warp * 16
        number = 0
        for block, of_block in enumerate(accumulators):
            column = tile.row + 64 * block
            for first in firsts:
                self._await_buffer(0 if is_odd and number == 0 else self.buffers - 1)
                buffer = self.offset + number % self.buffers * _BYTES
                row = tile.column + first
                rows = min(_ROWS, self.n - first)
                self._write(of_block, first, rows, Tile(row, column, tile.batch), buffer)
                place = Tile(row, column - own, tile.batch)
                self._copy_by_tma(place, buffer, self.maps[rows])
                number += 1

    def _synchronize(self) -> None:
        named_barrier(self.b, self.barrier, WARPGROUP)

    # --- To shared memory ----------------------------------------------------------------

    def _write(self, accumulators: Value, first: int, rows: int, at: Tile, buffer: Number) -> None:
        """Writes this warp's 16 columns, 16 rows at a time: stmatrix transposes four matrices of
        8 x 8, and each lane gives the address of one of their 32 rows of C."""
        b = self.b
        base = self._row_address(buffer)
        for group in range(0, rows, 16):
            words = [
                self._word(self._neighbours(accumulators, first, group + 8 * half, at, low))
                for half in range(2)
                for low in range(2)
            ]
            place = shared_pointer(b, base + group * SWIZZLE_BYTES)
            stmatrix(b, words, place, transposes=True)

    def _row_address(self, buffer: Number) -> Number:
        """The address of the lane's row of its 8 x 8 matrix. Lanes 0 to 7 have the first 8 columns,
        lanes 8 to 15 the next 8; the others have those of the next 8 rows."""
        in_eight = self.lane & 7
        row = in_eight + ((self.lane >> 4) << 3)
        half = self.lane >> 3 & 1
        chunk = (self.warp << 1) + half
        swizzled = chunk ^ in_eight
        offset: Number = (row << 7) + (swizzled << 4)
        return self.address + buffer + offset

    def _neighbours(
        self, accumulators: Value, first: int, row: int, at: Tile, low: int
    ) -> tuple[Value, Value]:
        """Two elements of C in one column and consecutive rows, of C's type. `row`: the first of 8
        rows in the subtile, which begins at the tile's row `first`."""
        b = self.b
        index = (first + row) // 2 + 2 * low
        values = unpack(b, accumulators, self.accumulator, (index, index + 1))
        if self.epilogue is None:
            upper, lower = (b.convert(value, self.c.element) for value in values)
            return upper, lower
        column = at.column + ((self.lane >> 2) + 8 * low)
        above = at.row + ((self.lane & 3) << 1)
        places = [self._inside(above + (row + side), 0) for side in range(2)]
        inside = self._inside(column, 1)
        batch = None if at.batch is None else b.index(at.batch)
        [upper], [lower] = (
            self.epilogue(b, [value], Place(batch, place, [inside]))
            for value, place in zip(values, places, strict=True)
        )
        return upper, lower
