"""The kernel that reads K and V once. Each block has some queries of a group, and a split of the
keys.

A block iterates over its keys in tiles. A row of K or V is loaded by `lanes` adjacent threads, 16
bytes each. All threads load the rows of a tile at once, those of V before the first row of K is
used. Scores are dot products in f32, which the lanes reduce by shuffles. They pass through shared
memory to warps with one query each, which compute P, and keep the largest score and the sum of P.
Each thread then multiplies its rows of V by P. The block's accumulators of P · V, its largest
scores and its sums of P are stored to f32 buffers, for `combine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import WIDEST_ACCESS, Buffer, Builder
from aotc.builder.numbers import (
    Float,
    Number,
    Scalar,
    Value,
    compare,
    divide_up,
    fma,
    maximum,
    maximum_number,
    minimum,
    unravel,
)
from aotc.chips import H100, WARP
from aotc.kernels.attention.arithmetic import minus_infinity, unless_empty
from aotc.kernels.attention.decode.combine import MOST_SPLITS, Partials, combine, exp
from aotc.kernels.attention.masks import masked, outer_index
from aotc.kernels.attention.problem import Attention
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix
from aotc.kernels.matmul.scalar import launch
from aotc.kernels.warp_reduction import butterfly_distances, reduce_over_lanes

_ENOUGH_BLOCKS = 4 * H100.multiprocessors
_MAX, _SUM, _RESCALE = range(3)  # rows of a block's state in shared memory


class Variant(Struct, frozen=True):
    """Parameters of a kernel. `m`: the queries of a block, which share K and V. `keys`: the keys of
    a tile. `warps`: the warps of a block. `overlaps_previous`: programmatic dependent launch (from
    sm_90 on)."""

    m: int
    keys: int
    warps: int
    overlaps_previous: bool = False

    @property
    def threads(self) -> int:
        return self.warps * WARP


class _Operand(Struct, frozen=True):
    """Q, K or V: the index of its matrix, this thread's first column in it, and the number of
    elements in the widest access."""

    buffer: Buffer
    batch: Number
    column: Number
    width: int


def _shared_sizes(variant: Variant, head_dim: int) -> tuple[int, int, int]:
    """The f32 elements in shared memory: scores or P, the state of queries, the accumulators of
    warps."""
    return variant.m * variant.keys, 3 * variant.m, variant.warps * variant.m * head_dim


def shared_bytes(variant: Variant, head_dim: int) -> int:
    return 4 * sum(_shared_sizes(variant, head_dim))


class Kernel:
    """Builds both kernels. Values that methods share are members."""

    def __init__(
        self, b: Builder, problem: Attention, variant: Variant, arguments: Sequence[Value]
    ) -> None:
        self.b, self.problem, self.variant = b, problem, variant
        self.q, self.k, self.v, self.o, *others = map(Buffer, arguments)
        self.masks = others[: int(problem.mask is not None)]
        self.tables = others[len(self.masks) :]
        self.head_dim = problem.head_dim or 0
        self.width = WIDEST_ACCESS // ELEMENT_BYTES[problem.q.element]
        self.lanes = self.head_dim // self.width
        # The keys that the block reads at once, and the number of such steps in a tile.
        self.slots = variant.threads // self.lanes
        self.steps = variant.keys // self.slots

    def build(self) -> None:
        b, problem, variant = self.b, self.problem, self.variant
        self.keys = self._count_keys()
        batches = b.dim(self.q.value, 0) if problem.batch is None else problem.batch
        blocks = batches // variant.m
        self.tiles = divide_up(self.keys, variant.keys)
        self.splits = maximum(1, minimum(_ENOUGH_BLOCKS // maximum(blocks, 1), MOST_SPLITS))
        self.tiles_of_split = divide_up(self.tiles, self.splits)
        # Each split has at least one tile.
        self.splits = divide_up(self.tiles, self.tiles_of_split)
        partials = Partials.allocate(b, batches * self.splits, self.head_dim)
        early = variant.overlaps_previous
        bytes_ = shared_bytes(variant, self.head_dim)
        blocks = blocks * self.splits
        with launch(b, blocks, variant.threads, bytes_, overlaps_previous=early) as block:
            group, split = unravel(block.index, self.splits)
            self.thread, self.group, self.split = block.thread, group, split
            self._compute(block.shared, partials)
        combine(b, problem, partials, self.o, batches, self.splits, overlaps_previous=early)
        partials.free(b)

    def _count_keys(self) -> Number:
        b, pages = self.b, self.problem.pages
        if self.problem.keys is not None:
            return self.problem.keys
        if pages is None:
            return b.dim(self.k.value, 1)
        return b.dim(self.tables[0].value, 1) * pages.rows

    # --- The kernel ----------------------------------------------------------------------

    def _compute(self, shared: Value, partials: Partials) -> None:
        b, variant, m = self.b, self.variant, self.variant.m
        self.warp, self.lane = unravel(self.thread, WARP)
        self.slot, self.lane_of_key = unravel(self.thread, self.lanes)
        self.own_column = self.lane_of_key * self.width
        self.first_query = self.group * m
        scores, state, _ = _shared_sizes(variant, self.head_dim)
        self.scores = b.shared_buffer(shared, 0, (m, variant.keys), "f32")
        self.state = b.shared_buffer(shared, 4 * scores, (3, m), "f32")
        shape = (variant.warps, m, self.head_dim)
        sums = b.shared_buffer(shared, 4 * (scores + state), shape, "f32")
        q = [self._load_query(self.first_query + i) for i in range(m)]
        k, v = self._operand(self.k, self.problem.k, 1), self._operand(self.v, self.problem.v, 2)
        with b.where(compare("ult", self.thread, m)):
            b.store(minus_infinity(b), self.state, [_MAX, self.thread])
            b.store(b.zero("f32"), self.state, [_SUM, self.thread])
        begin = self.split * self.tiles_of_split
        end = minimum(begin + self.tiles_of_split, self.tiles)
        start = [b.zero("f32")] * (m * self.width)
        with b.loop(begin, end, 1, [*start, *self._numbers(begin * variant.keys)]) as loop:
            carried, numbers = loop.carried[: len(start)], loop.carried[len(start) :]
            first = loop.index * variant.keys
            # The page numbers of the next tile are loaded while this tile is in flight.
            later = self._numbers(first + variant.keys)
            loop.next([*self._add_tile(first, q, k, v, carried, numbers), *later])
        self._write(loop.results[: len(start)], sums, partials)

    def _load_query(self, query: Number) -> list[Float]:
        operand = self._of_matrix(self.q, self.problem.q, query, 0)
        scale = self.b.constant(self.problem.scale, "f32")
        return [value * scale for value in self._load(operand, 0)]

    def _places(self) -> list[Number]:
        """The indices of the thread's keys in a tile."""
        return [self.slot + step * self.slots for step in range(self.steps)]

    def _rows(self, first: Number) -> list[Number]:
        """The thread's keys in the tile from `first` on. Keys past the last one are clamped to it;
        their P is 0."""
        return [minimum(first + place, self.keys - 1) for place in self._places()]

    def _numbers(self, first: Number) -> list[Value]:
        """The page numbers of the thread's keys in the tile from `first` on: those in the table of
        K, then those in the table of V."""
        b, pages = self.b, self.problem.pages
        if pages is None:
            return []
        sequence = self.first_query // self.problem.group // pages.heads
        places = [row // pages.rows for row in self._rows(first)]
        return [b.load(table, [sequence, place]) for table in self.tables for place in places]

    def _operand(self, buffer: Buffer, matrix: Matrix, number: int) -> _Operand:
        heads, batch = self.problem.heads[number], self.first_query // self.problem.group
        if (pages := self.problem.pages) is not None:
            head = batch % pages.heads
            if pages.has_head_rows:
                return self._of_matrix(buffer, matrix, 0, head * self.head_dim)
            return self._of_matrix(buffer, matrix, head, 0)
        if not heads:
            return self._of_matrix(buffer, matrix, batch, 0)
        outer, head = unravel(batch, heads)
        return self._of_matrix(buffer, matrix, outer, head * self.head_dim)

    def _of_matrix(self, buffer: Buffer, matrix: Matrix, batch: Number, column: Number) -> _Operand:
        width = max(1, min(matrix.alignment, WIDEST_ACCESS) // ELEMENT_BYTES[matrix.element])
        return _Operand(buffer, batch, column + self.own_column, width)

    def _load(self, operand: _Operand, row: Number) -> list[Value]:
        """The thread's columns of a row, as f32."""
        b, found = self.b, []
        for first in range(0, self.width, operand.width):
            at = [operand.batch, row, operand.column + first]
            found += b.load_elements(operand.buffer, at, operand.width)
        return [b.convert(value, "f32") for value in found]

    def _add_tile(
        self,
        first: Number,
        q: Sequence[Sequence[Float]],
        k: _Operand,
        v: _Operand,
        accumulators: Sequence[Float],
        numbers: Sequence[Value],
    ) -> list[Float]:
        """The accumulators, query by query, after the tile of keys from `first` on. `numbers`: the
        page numbers of the thread's keys."""
        b, places, rows = self.b, self._places(), self._rows(first)
        keys, values = (
            [
                self._load(self._in_page(one, page), self._row_in_page(row))
                for row, page in zip_longest(rows, numbers[own : own + len(rows)])
            ]
            for one, own in ((k, 0), (v, len(rows)))
        )
        self._share_scores(q, keys)
        b.barrier()
        self._make_p(first)
        b.barrier()
        found = []
        for query in range(self.variant.m):
            own = accumulators[query * self.width : (query + 1) * self.width]
            rescale = b.load(self.state, [_RESCALE, query])
            own = [one * rescale for one in own]
            for place, row in zip(places, values, strict=True):
                p = b.load(self.scores, [query, place])
                own = [fma(p, value, one) for value, one in zip(row, own, strict=True)]
            found += own
        # All threads have read P.
        b.barrier()
        return found

    def _in_page(self, operand: _Operand, number: Value | None) -> _Operand:
        """K or V in the page with the given number."""
        pages = self.problem.pages
        if pages is None or number is None:
            return operand
        page = self.b.index(Scalar(number))
        matrices = 1 if pages.has_head_rows else pages.heads
        return replace(operand, batch=page * matrices + operand.batch)

    def _row_in_page(self, row: Number) -> Number:
        return row if self.problem.pages is None else row % self.problem.pages.rows

    def _share_scores(self, q: Sequence[Sequence[Float]], keys: Sequence[Sequence[Float]]) -> None:
        """Writes the scores of the tile to shared memory."""
        b, m = self.b, self.variant.m
        dots = []
        for key in keys:
            for factors in q:
                dot = b.zero("f32")
                for one, other in zip(factors, key, strict=True):
                    dot = fma(one, other, dot)
                dots.append(dot)
        own, number, writes = reduce_over_lanes(
            b, self.lane, dots, butterfly_distances(self.lanes, 1)
        )
        with b.where(writes):
            for i, score in enumerate(own):
                step, query = unravel(number + i, m)
                b.store(score, self.scores, [query, self.slot + step * self.slots])

    def _make_p(self, first: Number) -> None:
        """Replaces the scores by P in shared memory. Warps take the queries by turns."""
        m, warps = self.variant.m, self.variant.warps
        for number in range(0, m, warps):
            query = self.warp + number
            is_there = number + warps <= m or compare("ult", query, m)
            with self.b.where(is_there):
                self._make_row_of_p(query, first)

    def _make_row_of_p(self, query: Number, first: Number) -> None:
        b = self.b
        places = [self.lane + number for number in range(0, self.variant.keys, WARP)]
        scores = [self._score(query, first, place) for place in places]
        before = b.load(self.state, [_MAX, query])
        largest = before
        for score in scores:
            largest = maximum_number(largest, score)
        for distance in butterfly_distances(WARP, 1):
            largest = maximum_number(largest, b.shuffle_xor(largest, distance))
        shift = unless_empty(b, largest, largest)
        total = b.zero("f32")
        for place, score in zip(places, scores, strict=True):
            p = exp(b, score - shift)
            b.store(p, self.scores, [query, place])
            total = total + p
        for distance in butterfly_distances(WARP, 1):
            total = b.add(total, b.shuffle_xor(total, distance))
        with b.where(compare("eq", self.lane, 0)):
            rescale = exp(b, before - shift)
            sum_ = fma(b.load(self.state, [_SUM, query]), rescale, total)
            for row, value in ((_MAX, largest), (_SUM, sum_), (_RESCALE, rescale)):
                b.store(value, self.state, [row, query])

    def _score(self, query: Number, first: Number, place: Number) -> Float:
        """A score with its mask; -infinity for keys past the last one."""
        b, key = self.b, first + place
        score: Float = b.load(self.scores, [query, place])
        if self.problem.mask is not None:
            outer = outer_index(b, self.problem.mask, self.first_query + query, b.value(0))
            at = [*outer, minimum(key, self.keys - 1)]
            element = b.convert(b.load(self.masks[0], at), "f32")
            score = masked(b, self.problem.mask, score, 1.0, element)
        if isinstance(self.keys, int) and self.keys % self.variant.keys == 0:
            return score
        found: Float = b.select(compare("ult", key, self.keys), score, minus_infinity(b))
        return found

    # --- The block's results -------------------------------------------------------------

    def _write(self, accumulators: Sequence[Float], sums: Buffer, partials: Partials) -> None:
        """Adds the accumulators of all threads with the same columns, and stores the block's
        partial results."""
        b, variant, m = self.b, self.variant, self.variant.m
        distances = butterfly_distances(WARP, self.lanes)
        own, number, writes = reduce_over_lanes(b, self.lane, accumulators, distances)
        with b.where(writes):
            for i, value in enumerate(own):
                query, column = unravel(number + i, self.width)
                b.store(value, sums, [self.warp, query, self.own_column + column])
        b.barrier()
        outputs = m * self.head_dim
        for first in range(0, outputs, variant.threads):
            place = self.thread + first
            is_there = first + variant.threads <= outputs or compare("ult", place, outputs)
            with b.where(is_there):
                query, column = unravel(place, self.head_dim)
                total = b.load(sums, [0, query, column])
                for warp in range(1, variant.warps):
                    total = total + b.load(sums, [warp, query, column])
                b.store(total, partials.o, [self._row(query), column])
        with b.where(compare("ult", self.thread, m)):
            row = self._row(self.thread)
            for column, which in enumerate((_MAX, _SUM)):
                value = b.load(self.state, [which, self.thread])
                b.store(value, partials.state, [row, column])

    def _row(self, query: Number) -> Number:
        return (self.first_query + query) * self.splits + self.split
