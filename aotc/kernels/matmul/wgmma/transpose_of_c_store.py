"""What a kernel of `hopper` does with its sums where these are of C transposed, of 16 bits.

Of 64 columns of C that a warpgroup has each warp has 16. So the four make a piece together: 64
columns, which are 128 bytes, of up to 64 rows of C, that one of them hands to TMA.
"""

from __future__ import annotations

from aotc.kernels.matmul.problem import Place, Problem, convert
from aotc.kernels.matmul.wgmma.store import Store
from aotc.kernels.matmul.wgmma.tiles import SWIZZLED, Tile, is_aligned, make_map, map_type

_ROWS = 64
_BYTES = _ROWS * SWIZZLED
_WARPGROUP = 128  # threads
# The named barrier of the first warpgroup that multiplies, behind those of `turns`.
_BARRIER = 4


def can_store_swapped(problem: Problem) -> bool:
    # Of further matrices a thread would read single elements, of a column.
    reads_matrices = any(len(extra.axes) > 1 for extra in problem.extras)
    is_stored = problem.c.element in ("f16", "bf16") and is_aligned(problem.c)
    return is_stored and not problem.adds and not reads_matrices


class SwappedStore(Store):
    """Tiles have `n` rows of C: what a tile of C transposed calls columns."""

    def make_maps(self, target: str) -> None:
        """The last piece of a tile may have fewer rows."""
        for rows in {min(_ROWS, self.n), self.n % _ROWS} - {0}:
            self.maps[rows] = make_map(
                self.e, target, self.c, self._box(rows), self._map_type(rows)
            )

    def _box(self, rows: int) -> tuple[int, ...]:
        return (1, rows, self.columns) if self.problem.batched else (rows, self.columns)

    def _map_type(self, rows: int) -> str:
        return map_type(self._tile_type(rows))

    def begin(
        self, shared: str, address: str, offset: str, lane: str, sizes: tuple[str, str]
    ) -> None:
        """`sizes`: of C."""
        super().begin(shared, address, offset, lane, sizes)
        e = self.e
        # This warp's buffers begin at `offset`, its warpgroup's at those of its first warp.
        self.warp = e.do("andi", e.do("shrui", e.i32("%tx"), 5), 3)
        own = e.do("muli", self.warp, self.shared_bytes(1, self.buffers))
        self.offset = e.do("subi", offset, own)
        warpgroup = e.do("shrui", e.i32("%tx"), 7)
        number = e.do("addi", warpgroup, _BARRIER - 1)
        self.barrier = f"id = {number} number_of_threads = {e.constant(_WARPGROUP, 'i32')}"
        self.is_first_lane = e.do("andi", self.is_first_lane, e.compare("eq", self.warp, 0), "i1")

    def prepare(self, tile: Tile) -> None:
        """Nothing: a thread's neighbours are in rows."""

    def store(self, sums: list[str], tile: Tile) -> None:
        """`tile`: where the warp's rows of C transposed begin; the next ones are 64 below."""
        e = self.e
        firsts = range(0, self.n, _ROWS)
        is_odd = len(sums) * len(firsts) % self.buffers != 0
        own = e.do("muli", self.warp, 16)
        number = 0
        for block, block_sums in enumerate(sums):
            column = e.do("addi", tile.row, 64 * block)
            for first in firsts:
                self._await_buffer(0 if is_odd and number == 0 else self.buffers - 1)
                buffer = e.do("addi", self.offset, number % self.buffers * _BYTES)
                row = e.do("addi", tile.column, first)
                rows = min(_ROWS, self.n - first)
                self._write(block_sums, first, rows, Tile(row, column, tile.batch), buffer)
                place = Tile(row, e.do("subi", column, own), tile.batch)
                self._store_by_tma(place, buffer, rows)
                number += 1

    def _synchronize_warp(self) -> None:
        """With the others that make a piece."""
        self.e.line(f"nvvm.barrier {self.barrier}")

    # --- To shared memory ----------------------------------------------------------------

    def _write(self, sums: str, first: int, rows: int, at: Tile, buffer: str) -> None:
        """This warp's 16 columns, 16 rows at once: four matrices of 8 x 8 that are transposed on
        their way, of whose 32 rows in C each lane gives the address of one."""
        e = self.e
        base = self._address(buffer)
        for group in range(0, rows, 16):
            words = [
                self._word(
                    self._neighbours(sums, first + group + 8 * half, at, group + 8 * half, low)
                )
                for half in range(2)
                for low in range(2)
            ]
            place = e.pointer(e.do("addi", base, group * SWIZZLED))
            e.line(
                f"nvvm.stmatrix {place}, {', '.join(words)} {{layout = #nvvm.mma_layout<col>, "
                "shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, "
                "eltType = #nvvm.ld_st_matrix_elt_type<b16>} "
                ": !llvm.ptr<3>, i32, i32, i32, i32"
            )

    def _address(self, buffer: str) -> str:
        """Where a lane's row of its matrix begins: lanes 0 to 7 have rows of the columns' first
        half, 8 to 15 of the second one, and the others those of the next 8 rows."""
        e = self.e
        in_eight = e.do("andi", self.lane, 7)
        row = e.do("addi", in_eight, e.do("shli", e.do("shrui", self.lane, 4), 3))
        half = e.do("andi", e.do("shrui", self.lane, 3), 1)
        chunk = e.do("addi", e.do("shli", self.warp, 1), half)
        swizzled = e.do("xori", chunk, in_eight)
        offset = e.do("addi", e.do("shli", row, 7), e.do("shli", swizzled, 4))
        return e.do("addi", e.do("addi", self.address, buffer), offset)

    def _neighbours(self, sums: str, number: int, at: Tile, row: int, low: int) -> tuple[str, str]:
        """Two of C's elements in one column and in rows that follow each other, as C has them.
        `number`: of the 8 rows' first in the tile, `row`: in the piece."""
        e = self.e
        index = number // 2 + 2 * low
        values = [
            e.value(f"llvm.extractvalue {sums}[{index + side}] : {self.sums}") for side in range(2)
        ]
        if self.finish is None:
            first, second = (convert(e, value, "f32", self.c.element) for value in values)
            return first, second
        column = e.do("addi", at.column, e.do("addi", e.do("shrui", self.lane, 2), 8 * low))
        above = e.do("addi", at.row, e.do("shli", e.do("andi", self.lane, 3), 1))
        places = [self._inside(e.do("addi", above, row + side), self.sizes[0]) for side in range(2)]
        inside = self._inside(column, self.sizes[1])
        batch = None if at.batch is None else e.index(at.batch)
        [first], [second] = (
            self.finish(e, [value], Place(batch, place, [inside]))
            for value, place in zip(values, places, strict=True)
        )
        return first, second
