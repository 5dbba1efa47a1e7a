"""What a kernel of `hopper` does with its sums where these are of C transposed.

Of a wgmma's 64 rows a warp has 16: columns of C here, two neighbours in each lane
(`fragments` has put them there). A piece is these 16 columns of as many rows of C as there
is room for, 32 of 32 bits or 64 of 16.
"""

from __future__ import annotations

from aotc.kernels.matmul.problem import Finish, Problem
from aotc.kernels.matmul.wgmma.epilogue_operands import Neighbours
from aotc.kernels.matmul.wgmma.store import (
    PIECE_BYTES,
    PIECE_ROWS,
    Pairs,
    Store,
)
from aotc.kernels.matmul.wgmma.tiles import Body, Tile, map_type

_CHUNK = 16  # bytes, which a swizzle moves


class TransposedStore(Store):
    """Tiles have `n` rows of C. What `Store` calls columns are rows here, and the other way round;
    but of pairs, whose elements are neighbours in C."""

    def __init__(
        self, e: Body, problem: Problem, n: int, finish: Finish | None, buffers: int = 2
    ) -> None:
        super().__init__(e, problem, n, finish, buffers)
        self.row_bytes = PIECE_ROWS * self.element_bytes
        self.columns = PIECE_BYTES // self.row_bytes

    def _box(self, columns: int) -> tuple[int, ...]:
        return (1, columns, PIECE_ROWS) if self.problem.batched else (columns, PIECE_ROWS)

    def _map_type(self, columns: int) -> str:
        return map_type(self._tile_type(columns), self.row_bytes)

    def _load_column_extras(self, first: int, at: Tile) -> dict[int, Neighbours]:
        return {}

    def _load_extras(self, first: int, at: Tile) -> dict[int, list[str]]:
        """None: each element is read where it is needed."""
        return {}

    def _store_piece(
        self, sums: str, first: int, at: Tile, buffer: str, loaded: dict[int, list[str]]
    ) -> None:
        rows = min(self.columns, self.n - first)
        at = Tile(at.column, at.row, at.batch)
        address = self.e.do("addi", self.address, buffer)
        self._write(self._pairs(sums, first, rows, at, {}), address)
        if self.by_tma:
            self._store_by_tma(at, buffer, rows)
        else:
            self._synchronize_warp()
            self._store_by_rows(at, address, rows)

    def _pairs(
        self, sums: str, first: int, columns: int, at: Tile, given: dict[int, Neighbours]
    ) -> list[Pairs]:
        """Of 8 rows of C: this lane's neighbours in one, and in the next one."""
        e = self.e
        needs_place = self.finish is not None or self.problem.adds
        batch = None if at.batch is None or not needs_place else e.index(at.batch)
        places = self._own_columns(at) if needs_place else ["", ""]
        groups = []
        for group in range(0, columns, 8):
            rows = self._own_rows(at, group) if needs_place else ["", ""]
            number = (first + group) // 2
            upper, lower = (
                self._elements(sums, (number + side, number + 2 + side), (row, places), batch, {})
                for side, row in enumerate(rows)
            )
            groups.append((upper, lower))
        return groups

    def _own_rows(self, at: Tile, offset: int) -> list[str]:
        e = self.e
        pair = e.do("shli", e.do("andi", self.lane, 3), 1)
        row = e.do("addi", e.do("addi", at.row, pair), offset)
        return [self._inside(e.do("addi", row, side), self.sizes[0]) for side in range(2)]

    def _own_columns(self, at: Tile) -> list[str]:
        e = self.e
        pair = e.do("shli", e.do("shrui", self.lane, 2), 1)
        column = e.do("addi", at.column, pair)
        return [self._inside(e.do("addi", column, side), self.sizes[1]) for side in range(2)]

    # --- To shared memory, and from there ------------------------------------------------

    def _swizzled(self, offset: str) -> str:
        """As TMA has it: in rows of 64 bytes, chunks change places by bits 7 and 8 of their
        offset; in rows of 32, by bit 7."""
        e = self.e
        moved = e.do("andi", e.do("shrui", offset, 7), self.row_bytes // _CHUNK - 1)
        return e.do("xori", offset, e.do("shli", moved, 4))

    def _write(self, groups: list[Pairs], address: str) -> None:
        e = self.e
        pair_bytes = 2 * self.element_bytes
        row = e.do("shli", e.do("andi", self.lane, 3), 1)
        column = e.do("muli", e.do("shrui", self.lane, 2), pair_bytes)
        offset = e.do("addi", e.do("muli", row, self.row_bytes), column)
        # Two rows are swizzled alike, and 8 rows are 256 or 512 bytes.
        base = e.do("addi", address, self._swizzled(offset))
        for number, group in enumerate(groups):
            for side, pair in enumerate(group):
                place = e.do("addi", base, (8 * number + side) * self.row_bytes)
                e.line(
                    f"llvm.store {self._vector(pair)}, {e.pointer(place)} "
                    f"{{alignment = {pair_bytes} : i64}} : {self.pair}, !llvm.ptr<3>"
                )

    def _store_by_rows(self, at: Tile, address: str, columns: int) -> None:
        """Two rows at once, by half a warp each."""
        e = self.e
        zero, two, rows = (e.constant(number, "i32") for number in (0, 2, columns))
        half, column = e.do("shrui", self.lane, 4), e.do("andi", self.lane, PIECE_ROWS - 1)
        place = e.do("addi", at.column, column)
        is_column = e.compare("ult", place, self.sizes[1])
        with e.block(f"scf.for %r = {zero} to {rows} step {two} : i32"):
            own = e.do("addi", "%r", half)
            row = e.do("addi", at.row, own)
            is_inside = e.do("andi", is_column, e.compare("ult", row, self.sizes[0]), "i1")
            in_row = e.do("muli", column, self.element_bytes)
            offset = e.do("addi", e.do("muli", own, self.row_bytes), in_row)
            with e.block(f"scf.if {is_inside}"):
                source = e.do("addi", address, self._swizzled(offset))
                self._store_element(source, Tile(row, place, at.batch))
