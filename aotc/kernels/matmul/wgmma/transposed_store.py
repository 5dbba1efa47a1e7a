"""The epilogue of kernels that compute the transpose of C with the left operand in registers.

A warp has 16 of a wgmma's 64 rows, which are columns of C here. Each lane has two adjacent ones
(because of the order of `fragments`). A subtile has these 16 columns, and as many rows of C as fit:
32 rows of 32-bit elements or 64 rows of 16-bit elements.
"""

from __future__ import annotations

from aotc.builder.numbers import Number, Value, compare
from aotc.kernels.hopper.smem import shared_pointer, store
from aotc.kernels.hopper.tiles import Tile
from aotc.kernels.matmul.wgmma.epilogue import SUBTILE_ROWS, Group, TmaStoreEpilogue
from aotc.kernels.matmul.wgmma.epilogue_operands import Pairs

_CHUNK = 16  # bytes: the unit that the swizzle permutes


class TransposedEpilogue(TmaStoreEpilogue):
    """Stores tiles of `n` rows of C. The rows and columns of the base class are columns and rows of
    C here, except in pairs, whose elements are adjacent in a row of C."""

    @property
    def row_bytes(self) -> int:
        return SUBTILE_ROWS * self.element_bytes

    def _box(self, columns: int) -> tuple[int, int]:
        return columns, SUBTILE_ROWS

    def _swizzle(self, columns: int) -> int:
        return self.row_bytes

    def _load_column_operands(self, first: int, at: Tile) -> dict[int, Pairs]:
        return {}

    def _load_matrix_operands(self, first: int, at: Tile) -> dict[int, list[Value]]:
        """Loads nothing ahead: each element is loaded where it is needed."""
        return {}

    def _store_subtile(
        self,
        accumulators: Value,
        first: int,
        at: Tile,
        buffer: Number,
        loaded: dict[int, list[Value]],
    ) -> None:
        rows = min(self.columns, self.n - first)
        at = Tile(at.column, at.row, at.batch)
        address = self.address + buffer
        self._write(self._elements(accumulators, first, rows, at, {}), address)
        self._copy(at, buffer, address, rows)

    def _elements(
        self, accumulators: Value, first: int, columns: int, at: Tile, given: dict[int, Pairs]
    ) -> list[Group]:
        """This lane's pairs of adjacent elements, for each 8 rows of C: one in a row, and one in
        the next row."""
        batch = self._batch(at)
        places = self._own_columns(at) if self._needs_place else [0, 0]
        groups = []
        for group in range(0, columns, 8):
            rows = self._own_rows(at, group) if self._needs_place else [0, 0]
            number = (first + group) // 2
            upper, lower = (
                self._pair(
                    *(accumulators, (number + side, number + 2 + side), (batch, row, places), {})
                )
                for side, row in enumerate(rows)
            )
            groups.append((upper, lower))
        return groups

    def _own_rows(self, at: Tile, offset: int) -> list[Number]:
        row = at.row + ((self.lane & 3) << 1) + offset
        return [self._inside(row + side, 0) for side in range(2)]

    def _own_columns(self, at: Tile) -> list[Number]:
        column = at.column + ((self.lane >> 2) << 1)
        return [self._inside(column + side, 1) for side in range(2)]

    # --- To shared memory, and from there ------------------------------------------------

    def _swizzled(self, offset: Number) -> Number:
        """The offset, swizzled as by TMA: in rows of 64 bytes, bits 7 and 8 of the offset permute
        the chunks of 16 bytes; in rows of 32 bytes, bit 7."""
        moved = offset >> 7 & (self.row_bytes // _CHUNK - 1)
        return offset ^ moved << 4

    def _write(self, groups: list[Group], address: Number) -> None:
        b, pair_bytes = self.b, 2 * self.element_bytes
        row = (self.lane & 3) << 1
        column = (self.lane >> 2) * pair_bytes
        # Both rows of a pair of rows have the same swizzle. 8 rows are 256 or 512 bytes.
        base = address + self._swizzled(row * self.row_bytes + column)
        for number, group in enumerate(groups):
            for side, pair in enumerate(group):
                place = base + (8 * number + side) * self.row_bytes
                vector = self._vector(pair)
                store(b, vector, shared_pointer(b, place), pair_bytes)

    def _copy_rows(self, at: Tile, address: Number, columns: int) -> None:
        """Stores two rows at once, each by half of the warp."""
        b = self.b
        half, column = self.lane >> 4, self.lane & (SUBTILE_ROWS - 1)
        place = at.column + column
        is_column = compare("ult", place, self.sizes[1])
        with b.loop(b.constant(0, "i32"), columns, 2) as loop:
            own = loop.index + half
            row = at.row + own
            is_inside = is_column & compare("ult", row, self.sizes[0])
            in_row = column * self.element_bytes
            offset = own * self.row_bytes + in_row
            with b.where(is_inside):
                self._copy_element(address + self._swizzled(offset), Tile(row, place, at.batch))
