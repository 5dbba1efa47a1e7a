"""The epilogue of a consumer warpgroup: accumulators → subtiles in shared memory → C.

A subtile has 16 rows, the rows of a warp in a wgmma, of 128 bytes. Each warp writes its own
subtiles. TMA stores them, and skips elements outside of C. If C's rows are not aligned for TMA, the
warp stores the subtile row by row.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Scalar, Value, compare, minimum
from aotc.chips import WARP
from aotc.kernels.hopper.cta import Cta
from aotc.kernels.hopper.smem import (
    SWIZZLE_BYTES,
    load,
    shared_pointer,
    stmatrix,
    store,
    synchronize_warp,
    unpack,
)
from aotc.kernels.hopper.tiles import Tile
from aotc.kernels.hopper.tma import TensorMap, create_tensor_map, is_aligned
from aotc.kernels.matmul.problem import ELEMENT_BYTES, EpilogueBuilder, Place, Problem
from aotc.kernels.matmul.wgmma.column_operands import ColumnOperands, is_column_operand
from aotc.kernels.matmul.wgmma.epilogue_operands import MatrixOperands, Pairs, is_matrix_operand
from aotc.mlir import ir

SUBTILE_ROWS = 16
SUBTILE_BYTES = SUBTILE_ROWS * SWIZZLE_BYTES
_REGISTER_BYTES = 4

# A thread's elements in 8 columns of a subtile: two adjacent ones in one of the first 8 rows, and
# two in the row 8 below.
Group = tuple[tuple[Value, Value], tuple[Value, Value]]


def accumulator_of(problem: Problem) -> str:
    """The type of the tensor cores' accumulators."""
    return "i32" if problem.a.element == "i8" else "f32"


class TmaStoreEpilogue:
    """Stores the accumulators of tiles of `n` columns to `c`.

    The constructor and `create_tensor_maps` are called in host code; a consumer calls `begin`,
    `prefetch`, `store` and `end`. `buffers`: the number of buffers of each warp. With two, one is
    filled while the other one is read.
    """

    def __init__(
        self,
        b: Builder,
        problem: Problem,
        n: int,
        c: Value,
        operands: Sequence[Value] = (),
        epilogue: EpilogueBuilder | None = None,
        *,
        buffers: int = 2,
        registers_ahead: int = 0,
    ) -> None:
        """`operands`: the problem's epilogue operands, which `epilogue` reads. `registers_ahead`:
        the number of free registers. Operands along columns are loaded a subtile ahead if it
        suffices for all operands."""
        self.b, self.problem, self.n = b, problem, n
        self.operands, self.epilogue, self.buffers = operands, epilogue, buffers
        self.c = Buffer(c)
        self.element_bytes = ELEMENT_BYTES[problem.c.element]
        self.columns = SWIZZLE_BYTES // self.element_bytes
        self.uses_tma = is_aligned(problem.c)
        self.accumulator = accumulator_of(problem)
        self.column_operands = ColumnOperands(
            *(b, problem, operands),
            has_pairs=self._are_pairs_whole() and self._registers_ahead() <= registers_ahead,
        )
        # Column operands of the next subtile.
        self.prefetched: dict[int, Pairs] | None = None
        # The tensor maps, by the width of subtiles.
        self.maps: dict[int, TensorMap] = {}

    def _registers_ahead(self) -> int:
        """The registers of a thread for the operands of two subtiles: two elements for each 8
        columns of operands along columns, and its part of matrices."""
        operands = self.problem.epilogue_operands
        of_columns = 2 * (min(self.columns, self.n) // 8)
        of_matrix = SUBTILE_BYTES // WARP // _REGISTER_BYTES
        of_subtile = (
            of_columns * is_column_operand(one) + of_matrix * is_matrix_operand(self.problem, one)
            for one in operands
        )
        return 2 * sum(of_subtile)

    @staticmethod
    def shared_bytes(warps: int, buffers: int = 2) -> int:
        return warps * buffers * SUBTILE_BYTES

    # --- Host code -----------------------------------------------------------------------

    def create_tensor_maps(self) -> None:
        """Creates a tensor map for each width of subtiles. The last subtile of a tile may be
        narrower, so that it does not overlap the next tile."""
        if not self.uses_tma:
            return
        for columns in {min(self.columns, self.n), self.n % self.columns} - {0}:
            self._create_tensor_map(columns, self._box(columns), self._swizzle(columns))

    def _create_tensor_map(self, extent: int, box: tuple[int, ...], swizzle: int) -> None:
        box = (1, *box) if self.problem.batched else box
        matrix = self.problem.c
        map_ = create_tensor_map(self.b, self.c.value, matrix, box, swizzle=swizzle)
        self.maps[extent] = map_

    def _box(self, columns: int) -> tuple[int, int]:
        return SUBTILE_ROWS, columns

    def _swizzle(self, columns: int) -> int:
        return SWIZZLE_BYTES if columns == self.columns else 0

    # --- The kernel ----------------------------------------------------------------------

    def begin(self, cta: Cta, offset: Number, sizes: tuple[Scalar, Scalar]) -> None:
        """Prepares a consumer. `offset`: the offset of this warp's buffers in shared memory.
        `sizes`: the sizes of C."""
        self.shared, self.address, self.offset = cta.shared, cta.address, offset
        self.lane, self.sizes = cta.lane, sizes
        self.is_first_lane = compare("eq", self.lane, 0)
        self.matrix_operands = MatrixOperands(
            *(self.b, self.problem, self.operands),
            *((SUBTILE_ROWS, self.columns), self.lane, sizes),
        )

    def prefetch(self, tile: Tile) -> None:
        """Starts to load the operands of the first subtile of the tile, before `store`."""
        self.prefetched = self._load_column_operands(0, tile)

    def _load_column_operands(self, first: int, at: Tile) -> dict[int, Pairs]:
        """Loads the column operands of a subtile that begins at the tile's column `first`."""
        return self.column_operands.load(at.column, min(self.columns, self.n - first), self.lane)

    def store(self, accumulators: Sequence[Value], tile: Tile) -> None:
        """Stores the accumulators. `tile`: the coordinates of the warp's first row of the first
        accumulators. The rows of each further block are 64 below."""
        subtiles = [
            (block, first, Tile(tile.row + 64 * number, tile.column + first, tile.batch))
            for number, block in enumerate(accumulators)
            for first in range(0, self.n, self.columns)
        ]
        is_odd = len(subtiles) % self.buffers != 0
        loaded = self._load_matrix_operands(*subtiles[0][1:])
        if self.prefetched is None:
            self.prefetch(tile)
        for number, (block, first, at) in enumerate(subtiles):
            # The operands of the next subtile are loaded while this one is stored.
            next_loaded, next_prefetched = {}, None
            if subtiles[number + 1 :]:
                next_loaded = self._load_matrix_operands(*subtiles[number + 1][1:])
                next_prefetched = self._load_column_operands(*subtiles[number + 1][1:])
            # With an odd number of subtiles, this tile begins with the buffer that the previous
            # tile ended with.
            self._await_buffer(0 if is_odd and number == 0 else self.buffers - 1)
            buffer = self.offset + number % self.buffers * SUBTILE_BYTES
            self._store_subtile(block, first, at, buffer, loaded)
            loaded, self.prefetched = next_loaded, next_prefetched

    def _load_matrix_operands(self, first: int, at: Tile) -> dict[int, list[Value]]:
        """Loads the matrix operands of a subtile of full width; none for a narrower one."""
        return self.matrix_operands.load(at) if self.n - first >= self.columns else {}

    def end(self) -> None:
        """Waits until TMA has read the buffers, before the block ends."""
        if self.uses_tma:
            self._await_stores(0)

    def _await_buffer(self, in_use: int) -> None:
        """Waits until at most `in_use` of the warp's buffers are still being read."""
        if self.uses_tma:
            self._await_stores(in_use)
        # If lanes read the buffers themselves, writes to the other buffer have synchronized since.
        if self.uses_tma or in_use == 0:
            self._synchronize()

    def _await_stores(self, pending: int) -> None:
        group = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), pending)
        self.b.op("nvvm.cp.async.bulk.wait_group", group=group, read=ir.UnitAttr.get())

    def _synchronize(self) -> None:
        """Synchronizes the threads that write a subtile together."""
        synchronize_warp(self.b)

    def _store_subtile(
        self,
        accumulators: Value,
        first: int,
        at: Tile,
        buffer: Number,
        loaded: dict[int, list[Value]],
    ) -> None:
        """Stores the subtile from the tile's column `first` on to C at `at`. `buffer`: the offset
        of the buffer in shared memory. `loaded`: the loaded matrix operands."""
        columns = min(self.columns, self.n - first)
        # The tensor maps swizzle only rows of 128 bytes.
        is_swizzled = columns == self.columns or not self.uses_tma
        pitch = SWIZZLE_BYTES if is_swizzled else columns * self.element_bytes
        address = self.address + buffer
        write = self._write_words if self.element_bytes == 4 else self._write_halves
        given = {**self.matrix_operands.exchange(loaded, address), **(self.prefetched or {})}
        groups = self._elements(accumulators, first, columns, at, given)
        write(groups, address, pitch, is_swizzled=is_swizzled)
        self._copy(at, buffer, address, columns)

    # --- Elements ------------------------------------------------------------------------

    @property
    def _needs_place(self) -> bool:
        return self.epilogue is not None or self.problem.adds

    def _elements(
        self, accumulators: Value, first: int, columns: int, at: Tile, given: dict[int, Pairs]
    ) -> list[Group]:
        """This thread's elements of a subtile, in C's type."""
        rows = self._rows(at) if self._needs_place else [0, 0]
        batch = self._batch(at)
        groups = []
        for group in range(0, columns, 8):
            places = self._columns(at, group) if self._needs_place else [0, 0]
            number = (first + group) // 2
            upper, lower = (
                self._pair(
                    accumulators,
                    (number + 2 * half, number + 2 * half + 1),
                    (batch, row, places),
                    {operand: pairs[group // 8, half] for operand, pairs in given.items()},
                )
                for half, row in enumerate(rows)
            )
            groups.append((upper, lower))
        return groups

    def _batch(self, at: Tile) -> Number | None:
        return None if at.batch is None or not self._needs_place else self.b.index(at.batch)

    def _rows(self, at: Tile) -> list[Number]:
        """This thread's rows, clamped to C's last row. Elements outside of C are not stored."""
        row = at.row + (self.lane >> 2)
        return [self._inside(row + 8 * half, 0) for half in range(2)]

    def _columns(self, at: Tile, offset: int) -> list[Number]:
        """This thread's two columns of 8, clamped to C's last column."""
        column = at.column + ((self.lane & 3) << 1) + offset
        return [self._inside(column + side, 1) for side in range(2)]

    def _inside(self, place: Number, axis: int) -> Number:
        return self.b.index(minimum(place, self.sizes[axis] - 1))

    def _pair(
        self,
        accumulators: Value,
        numbers: tuple[int, int],
        place: tuple[Number | None, Number, list[Number]],
        given: dict[int, tuple[Value, Value]],
    ) -> tuple[Value, Value]:
        """The elements of C for two adjacent accumulators, whose indices are `numbers`."""
        b = self.b
        batch, row, columns = place
        values = unpack(b, accumulators, self.accumulator, numbers)
        if self.problem.adds:
            add = "arith.addi" if self.accumulator == "i32" else "arith.addf"
            before = self._load_pair(batch, row, columns)
            values = [
                b.op(add, [b.convert(old, self.accumulator), new], self.accumulator)
                for old, new in zip(before, values, strict=True)
            ]
        if self.epilogue is None:
            left, right = (b.convert(value, self.c.element) for value in values)
            return left, right
        if self._are_pairs_whole():
            columns = self._last_pair(columns)
        at = Place(batch, row, columns, self._are_pairs_whole(), given)
        left, right = self.epilogue(b, values, at)
        return left, right

    def _are_pairs_whole(self) -> bool:
        """Whether all rows begin at multiples of 16 bytes and have an even number of columns, so
        that both elements of a pair are in bounds, or none is."""
        n = self.problem.n
        return self.uses_tma and n is not None and n % 2 == 0

    def _last_pair(self, columns: list[Number]) -> list[Number]:
        """The two columns, clamped to C's last pair."""
        n = self.problem.n
        assert n is not None
        return [minimum(column, n - 2 + side) for side, column in enumerate(columns)]

    def _load_pair(self, batch: Number | None, row: Number, columns: list[Number]) -> list[Value]:
        """Loads two elements of C."""
        b = self.b
        front = [row] if batch is None else [batch, row]
        if not self._are_pairs_whole():
            return [b.load(self.c, [*front, column]) for column in columns]
        first = self._last_pair(columns)[0]
        alignment = 2 * self.element_bytes
        return b.elements(b.load_vector(self.c, [*front, first], 2, alignment))

    def _vector(self, pair: tuple[Value, Value]) -> Value:
        return self.b.op("vector.from_elements", pair, f"vector<2x{self.c.element}>")

    # --- To shared memory ----------------------------------------------------------------

    def _write_halves(
        self, groups: list[Group], address: Number, pitch: int, *, is_swizzled: bool
    ) -> None:
        """Writes 16-bit elements by stmatrix, 16 columns at once: four matrices of 8 x 8. Each lane
        passes the address of one of their 32 rows."""
        b = self.b
        row = self.lane & 15
        side = self.lane >> 4
        if is_swizzled:
            side = side ^ (self.lane & 7)
        base = address + (row * pitch + (side << 4))
        for number in range(0, len(groups), 2):
            words = [self._word(pair) for group in groups[number : number + 2] for pair in group]
            place = base ^ 16 * number if is_swizzled else base + 16 * number
            stmatrix(b, words, shared_pointer(b, place))

    def _word(self, pair: tuple[Value, Value]) -> Value:
        return self.b.op("llvm.bitcast", [self._vector(pair)], "i32")

    def _write_words(
        self, groups: list[Group], address: Number, pitch: int, *, is_swizzled: bool
    ) -> None:
        """Writes 32-bit elements, each lane its own pairs."""
        b = self.b
        row, quad = self.lane >> 2, self.lane & 3
        side = quad >> 1
        if is_swizzled:
            side = side ^ row
        in_row = (side << 4) + ((quad & 1) << 3)
        base = address + (row * pitch + in_row)
        for number, group in enumerate(groups):
            place = base ^ 32 * number if is_swizzled else base + 32 * number
            for half, pair in enumerate(group):
                pointer = shared_pointer(b, place + 8 * half * pitch)
                store(b, self._vector(pair), pointer, 8)

    # --- From shared memory to C ---------------------------------------------------------

    def _copy(self, at: Tile, buffer: Number, address: Number, columns: int) -> None:
        if self.uses_tma:
            self._copy_by_tma(at, buffer, self.maps[columns])
        else:
            self._synchronize()
            self._copy_rows(at, address, columns)

    def _copy_by_tma(self, at: Tile, buffer: Number, map_: TensorMap) -> None:
        b = self.b
        # Makes the writes visible to TMA (the async proxy).
        kind, space = "#nvvm.proxy_kind<async.shared>", "#nvvm.shared_space<cta>"
        b.op("nvvm.fence.proxy", kind=kind, space=space)
        self._synchronize()
        with b.where(self.is_first_lane):
            outer = [] if at.batch is None else [at.batch]
            map_.store(b, [at.column, at.row, *outer], self.shared, buffer)
        b.op("nvvm.cp.async.bulk.commit.group")

    def _copy_rows(self, at: Tile, address: Number, columns: int) -> None:
        b = self.b
        with b.loop(b.constant(0, "i32"), SUBTILE_ROWS) as loop:
            row = at.row + loop.index
            is_row = compare("ult", row, self.sizes[0])
            swizzle = (loop.index & 7) << 4
            line = address + loop.index * SWIZZLE_BYTES
            for first in range(0, columns, 32):
                column = self.lane + first
                place = Tile(row, at.column + column, at.batch)
                is_inside = is_row & compare("ult", place.column, self.sizes[1])
                if first + 32 > columns:
                    is_inside = is_inside & compare("ult", column, columns)
                with b.where(is_inside):
                    in_row = column * self.element_bytes ^ swizzle
                    self._copy_element(line + in_row, place)

    def _copy_element(self, address: Number, at: Tile) -> None:
        b = self.b
        value = load(b, shared_pointer(b, address), self.c.element)
        places = [at.row, at.column] if at.batch is None else [at.batch, at.row, at.column]
        b.store(value, self.c, [b.index(place) for place in places])
