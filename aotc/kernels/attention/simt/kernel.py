"""Attention in f32 by multiply-adds, in one kernel, for every GPU since sm_80.

A block computes a tile of O, and a warp some of its rows. The mainloop iterates over K and V in
tiles of some keys. For each, it computes S = Q · Kᵀ in registers; P, the softmax's numerators,
which pass through shared memory to lanes of the same warp; and O = O · rescale + P · V in
registers. Scores are never in global memory. The next tile of K is copied while P is multiplied by
V, and the next tile of V while scores are computed. The factors of four steps are read at once: 16
bytes of a row of K or of P. Q, which is copied once, is transposed in shared memory.

Multiplications and additions are in f32, in the threads' order of columns and of keys. O is divided
by the row sums at the end. This is f32 arithmetic as in the operations, in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from msgspec import Struct

from aotc.builder import Buffer, Builder, Launch
from aotc.builder.numbers import (
    Condition,
    Float,
    Number,
    Scalar,
    Value,
    compare,
    divide_up,
    fma,
    maximum,
    minimum,
    select,
    unravel,
)
from aotc.chips import WARP
from aotc.kernels.attention.arithmetic import minus_infinity
from aotc.kernels.attention.masks import outer_index
from aotc.kernels.attention.problem import Attention
from aotc.kernels.attention.simt.softmax import Softmax
from aotc.kernels.attention.simt.tiles import (
    BITS,
    GROUP,
    RUN,
    Tile,
    Tiles,
    Variant,
    column_groups,
    lane_place,
    lanes_of_copy,
    row_offsets,
    rows_of_copy,
)
from aotc.kernels.hopper.tma import is_aligned
from aotc.kernels.matmul.problem import Matrix
from aotc.kernels.tensor_core import commit_group, copy_async, wait_group

ELEMENT = "f32"


class _Operand(Struct, frozen=True):
    """A matrix in memory: the tile's index in the batch, its first column, and the number of
    elements in the widest access."""

    buffer: Buffer
    batch: Number
    column: Number
    width: int


class _State(Struct, frozen=True):
    """The loop-carried values of a thread: for each of its rows the largest score and the sum of
    P, and the accumulators of O, row by row."""

    row_max: list[Float]
    row_sum: list[Float]
    o: list[Float]

    @property
    def values(self) -> list[Float]:
        return [*self.row_max, *self.row_sum, *self.o]

    @staticmethod
    def of(values: Sequence[Float], rows: int) -> _State:
        return _State(list(values[:rows]), list(values[rows : 2 * rows]), list(values[2 * rows :]))


class Kernel:
    """Builds the kernel. Values that its methods share are members."""

    def __init__(
        self, b: Builder, problem: Attention, variant: Variant, arguments: Sequence[Value]
    ) -> None:
        self.b, self.problem, self.variant = b, problem, variant
        self.q, self.k, self.v, self.o, *self.masks = map(Buffer, arguments)
        self.head_dim = problem.head_dim or 0
        self.tiles = Tiles.of(variant, self.head_dim)
        self.columns = list(column_groups(variant, self.head_dim))
        lane_bits = BITS[variant.lanes_per_row][1]
        self.softmax = Softmax(b, problem.scale, lane_bits, problem.mask)

    def build(self) -> None:
        b, problem, variant = self.b, self.problem, self.variant
        self.queries = self._rows(self.q, problem.q)
        self.keys = self._rows(self.k, problem.k)
        self.batches: Number = (
            b.dim(self.q.value, 0) * max(problem.heads[0], 1)
            if problem.batch is None
            else problem.batch
        )
        self.tiles_down = divide_up(self.queries, variant.m)
        blocks = self.tiles_down * self.batches
        if isinstance(blocks, int) and blocks == 0:
            return
        # A grid has at least one block, which does nothing if there is no tile.
        with b.launch(maximum(blocks, 1), variant.threads, self.tiles.bytes) as launch:
            shared = b.shared_memory()
            is_known = isinstance(blocks, int)
            with b.where(True if is_known else compare("ult", launch.block, blocks)):
                self._compute_tile(shared, launch)

    def _rows(self, buffer: Buffer, matrix: Matrix) -> Number:
        known = matrix.sizes[0]
        return self.b.dim(buffer.value, 1) if known is None else known

    # --- The kernel ----------------------------------------------------------------------

    def _compute_tile(self, shared: Value, launch: Launch) -> None:
        b, variant = self.b, self.variant
        self.thread = launch.thread
        self._partition(launch.block)
        self.q_tile, self.k_tile, self.v_tile, self.p_tile = (
            b.shared_buffer(shared, tile.offset, (tile.rows, tile.pitch), ELEMENT)
            for tile in (self.tiles.q, self.tiles.k, self.tiles.v, self.tiles.p)
        )
        self._copy_q(self._operand(self.q, 0))
        self.k_operand = self._operand(self.k, 1)
        self.v_operand = self._operand(self.v, 2)
        self.group = self._copy_k(0)

        seen = self.keys
        if self.problem.causal:
            seen = minimum(seen, self.first_row + variant.m)
        blocks = divide_up(seen, variant.keys)
        whole = self.keys // variant.keys
        if self.problem.causal:
            whole = minimum(whole, (self.first_row + 1) // variant.keys)
        state = self._initial_state()
        state = self._mainloop(state, 0, whole, masks_keys=False)
        if not isinstance(blocks, int) or blocks != whole:
            state = self._mainloop(state, whole, blocks, masks_keys=True)
        self._epilogue(state)

    def _partition(self, block: Scalar) -> None:
        """Sets the block's tile, and the thread's rows and lane's column in it.

        Blocks are numbered over the batch first, then down the rows of tiles. With a causal mask
        they are numbered up: the last rows see the most keys, and the longest blocks start first.
        """
        variant = self.variant
        tile, self.batch = unravel(block, self.batches)
        if self.problem.causal:
            tile = self.tiles_down - 1 - tile
        self.first_row = tile * variant.m
        warp, lane = unravel(self.thread, WARP)
        lane_row, self.lane_column = lane_place(lane, variant.lanes_per_row)
        warp_row = warp * variant.warp_rows
        # One past the warp's last row.
        self.warp_end = warp_row + variant.warp_rows
        first = warp_row + lane_row * GROUP
        self.rows = [first + offset for offset in row_offsets(variant)]

    def _operand(self, buffer: Buffer, number: int) -> _Operand:
        problem = self.problem
        matrix = (problem.q, problem.k, problem.v, problem.o)[number]
        heads, width = problem.heads[number], GROUP if is_aligned(matrix) else 1
        if not heads:
            return _Operand(buffer, self.batch, 0, width)
        batch, head = unravel(self.batch, heads)
        return _Operand(buffer, batch, head * self.head_dim, width)

    # --- Copies to shared memory ---------------------------------------------------------

    def _copy_q(self, q: _Operand) -> None:
        """Starts to copy the tile's rows, transposed. Rows past the last one are 0."""
        variant = self.variant
        rows = variant.threads // RUN
        own_row, own_column = unravel(self.thread, RUN)
        first_row, first_column = self.first_row + own_row, q.column + own_column
        for down, across in product(range(0, variant.m, rows), range(0, self.head_dim, RUN)):
            row = first_row + down
            valid = 1 if self._has_whole_tiles else select(compare("ult", row, self.queries), 1, 0)
            at = [q.batch, row, first_column + across]
            to = [own_column + across, own_row + down]
            copy_async(self.b, q.buffer, at, self.q_tile, to, 1, valid)

    @property
    def _has_whole_tiles(self) -> bool:
        """Whether every tile of Q has all its rows."""
        return isinstance(self.queries, int) and self.queries % self.variant.m == 0

    def _copy_k(self, first: Number) -> Value:
        return self._copy(self.k_operand, self.tiles.k, self.k_tile, first)

    def _copy_v(self, first: Number) -> Value:
        return self._copy(self.v_operand, self.tiles.v, self.v_tile, first)

    def _copy(self, operand: _Operand, tile: Tile, to: Buffer, first: Number) -> Value:
        """Starts to copy the tile of K or V from key `first` on. Rows past the last key, possibly
        all of them, are 0."""
        variant, width = self.variant, operand.width
        lanes = lanes_of_copy(self.head_dim, width)
        rows = rows_of_copy(variant, self.head_dim, width)
        own_row, own_group = unravel(self.thread, lanes)
        own_column = own_group * width
        # Constants are added last, so that they are immediates, and need no registers.
        first_row, first_column = first + own_row, operand.column + own_column
        is_whole = isinstance(self.keys, int) and self.keys % tile.rows == 0
        all_valid = select(compare("ult", first, self.keys), width, 0) if is_whole else 0
        # A tile may have fewer rows than the block copies at once.
        has_row = rows <= tile.rows or compare("ult", own_row, tile.rows)
        with self.b.where(has_row):
            for down, across in product(
                range(0, tile.rows, rows), range(0, self.head_dim, lanes * width)
            ):
                target = [own_row + down, own_column + across]
                row, column = first_row + down, first_column + across
                valid = all_valid if is_whole else select(compare("ult", row, self.keys), width, 0)
                at = [operand.batch, row, column]
                copy_async(self.b, operand.buffer, at, to, target, width, valid)
        return commit_group(self.b)

    # --- The mainloop --------------------------------------------------------------------

    def _initial_state(self) -> _State:
        b, variant = self.b, self.variant
        zero, rows = b.zero(ELEMENT), variant.rows
        o = [zero] * (rows * self.head_dim // variant.lanes_per_row)
        return _State([minus_infinity(b)] * rows, [zero] * rows, o)

    def _mainloop(self, state: _State, start: Number, stop: Number, *, masks_keys: bool) -> _State:
        """The state after the blocks of keys from `start` to `stop`. `masks_keys`: some keys are
        masked by causality, or past the last one."""
        if start == stop:
            return state
        with self.b.loop(start, stop, 1, state.values) as loop:
            state = _State.of(loop.carried, self.variant.rows)
            loop.next(self._add_block(loop.index, state, masks_keys=masks_keys).values)
        return _State.of(loop.results, self.variant.rows)

    def _add_block(self, number: Scalar, state: _State, *, masks_keys: bool) -> _State:
        b, rows = self.b, self.variant.rows
        first = number * self.variant.keys
        # K has arrived, and all threads have read the previous tile of V.
        self._wait()
        self._copy_v(first)
        is_seen: Condition = True
        if masks_keys and self.problem.causal:
            is_seen = compare("ult", first, self.first_row + self.warp_end)
        made = b.choose(
            is_seen,
            [ELEMENT] * (3 * rows),
            lambda: self._make_p(state, first, masks_keys=masks_keys),
            # No row of the warp attends to these keys.
            lambda: [*state.row_max, *state.row_sum, *state.row_sum],
        )
        row_max, row_sum, rescale = (made[i * rows : (i + 1) * rows] for i in range(3))
        # V has arrived, and all threads have read K.
        self._wait()
        self._copy_k(first + self.variant.keys)
        o = b.choose(
            is_seen,
            [ELEMENT] * len(state.o),
            lambda: self._multiply_pv(state.o, rescale),
            lambda: state.o,
        )
        return _State(row_max, row_sum, o)

    def _wait(self) -> None:
        """Waits until the copies of all threads are complete."""
        wait_group(self.b, self.group, 0)
        self.b.barrier()

    def _make_p(self, state: _State, first: Number, *, masks_keys: bool) -> list[Float]:
        """Stores P of the block that begins with key `first` to shared memory. Returns the largest
        scores, the sums, and the factors that rescale O, each by row."""
        scores = self._multiply_qk()
        if self.masks:
            scores = self._add_mask(scores, first)
        updated = []
        for i, row in enumerate(scores):
            if masks_keys:
                row = self.softmax.mask_keys(row, self._end(i, first), self.variant.lanes_per_row)
            p, *of_row = self.softmax.update(row, state.row_max[i], state.row_sum[i])
            updated.append(of_row)
            self._store_p(i, p)
        return [value for values in zip(*updated, strict=True) for value in values]

    def _multiply_qk(self) -> list[list[Float]]:
        """S = Q · Kᵀ: for each of the thread's rows, the scores of its keys."""
        b, variant = self.b, self.variant
        rows, keys = variant.rows, variant.thread_keys
        k_rows = [self.lane_column + variant.lanes_per_row * i for i in range(keys)]
        zeros = [b.zero(ELEMENT)] * (rows * keys)
        with b.loop(0, self.head_dim, GROUP * variant.steps, zeros) as loop:
            scores = list(loop.carried)
            for step in range(variant.steps):
                column = loop.index + GROUP * step
                k = [b.load_elements(self.k_tile, [row, column], GROUP) for row in k_rows]
                for part in range(GROUP):
                    q_column = column + part
                    q = [
                        value
                        for row in self.rows[::GROUP]
                        for value in b.load_elements(self.q_tile, [q_column, row], GROUP)
                    ]
                    for i, row in _serpentine(keys, rows):
                        at = row * keys + i
                        scores[at] = fma(q[row], k[i][part], scores[at])
            loop.next(scores)
        return [loop.results[row * keys : (row + 1) * keys] for row in range(rows)]

    def _store_p(self, row: int, p: list[Float]) -> None:
        """Stores a row's P to shared memory; groups of keys of consecutive lanes are adjacent."""
        group = self.variant.key_group
        for first in range(0, len(p), group):
            column = self.lane_column * group + first * self.variant.lanes_per_row
            at = [self.rows[row], column]
            self.b.store_elements(p[first : first + group], self.p_tile, at)

    def _multiply_pv(self, o: list[Float], rescale: list[Float]) -> list[Float]:
        """O · rescale + P · V."""
        b, variant = self.b, self.variant
        group, lanes = variant.key_group, variant.lanes_per_row
        each = len(o) // variant.rows
        o = [value * rescale[i // each] for i, value in enumerate(o)]
        columns = [(self.lane_column * width + first, width) for first, width in self.columns]
        with b.loop(0, lanes, 1, o) as loop:
            # The keys of the lanes of a column.
            lane, o = loop.index, list(loop.carried)
            for first in range(0, variant.thread_keys, group):
                column = lane * group + first * lanes
                p = [b.load_elements(self.p_tile, [row, column], group) for row in self.rows]
                for part in range(group):
                    key = lane + (first + part) * lanes
                    v = [
                        value
                        for place, width in columns
                        for value in b.load_elements(self.v_tile, [key, place], width)
                    ]
                    for row, i in _serpentine(variant.rows, each):
                        at = row * each + i
                        o[at] = fma(p[row][part], v[i], o[at])
            loop.next(o)
        return loop.results

    # --- Masks ---------------------------------------------------------------------------

    def _end(self, row: int, first: Number) -> Scalar:
        """One past the last key that a row sees, relative to this thread's first key: an i32, which
        may be negative."""
        end = self.keys
        if self.problem.causal:
            end = minimum(end, self.first_row + self.rows[row] + 1)
        return self.b.signed_cast(end - first - self.lane_column, "i32")

    def _add_mask(self, scores: list[list[Float]], first: Number) -> list[list[Float]]:
        """The scores plus the mask. Rows and keys are clamped to the last one: those beyond it are
        not stored, or masked."""
        b, mask, buffer = self.b, self.problem.mask, self.masks[0]
        assert mask is not None
        last_row, last_key = self.queries - 1, self.keys - 1
        keys = [
            minimum(first + self.lane_column + self.variant.lanes_per_row * i, last_key)
            for i in range(self.variant.thread_keys)
        ]
        found = []
        for row, own in zip(self.rows, scores, strict=True):
            query = minimum(self.first_row + row, last_row)
            outer = outer_index(b, mask, self.batch, query)
            masked = []
            for score, key in zip(own, keys, strict=True):
                element = b.convert(b.load(buffer, [*outer, key]), ELEMENT)
                masked.append(self.softmax.add_mask(score, element))
            found.append(masked)
        return found

    # --- The epilogue --------------------------------------------------------------------

    def _epilogue(self, state: _State) -> None:
        """Divides O by the row sums, and stores it."""
        operand, each = self._operand(self.o, 3), len(state.o) // self.variant.rows
        for i, own_row in enumerate(self.rows):
            inverse = self.softmax.inverse_sum(
                *(state.row_max[i], state.row_sum[i]),
                empty_is_zero=self.problem.masked_rows_are_zero,
            )
            values = [value * inverse for value in state.o[i * each : (i + 1) * each]]
            row = self.first_row + own_row
            with self.b.where(self._has_whole_tiles or compare("ult", row, self.queries)):
                self._store_row(operand, row, values)

    def _store_row(self, o: _Operand, row: Number, values: list[Float]) -> None:
        rest = iter(values)
        for first, width in self.columns:
            column = o.column + first + self.lane_column * width
            step = min(width, o.width)
            for i in range(0, width, step):
                at = [o.batch, row, column + i]
                self.b.store_elements([next(rest) for _ in range(step)], o.buffer, at)


def _serpentine(count: int, each: int) -> Iterator[tuple[int, int]]:
    """All pairs (i, j) in an order in which consecutive ones share i or j: the shared factor's
    register is read once."""
    for i in range(count):
        for j in range(each)[:: -1 if i % 2 else 1]:
            yield i, j
