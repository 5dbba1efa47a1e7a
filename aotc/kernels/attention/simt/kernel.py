"""Attention in f32 by multiply-adds, in one kernel, for every GPU since sm_80.

A block makes a tile of O, a warp some of its rows. It goes over K and V in blocks of some keys:
scores = Q · Kᵀ, in registers; their terms go through shared memory, where the warp that has written
them reads them as its factors of V; sums = sums · factor + terms · V, in registers. Scores never
are in memory. K's next block is on its way while terms are multiplied by V, and V's while scores
are made. The factors of four steps are read at once, 16 bytes of a row of K or of the terms, which
lie as they come; Q, which is copied once, is turned.

Products are those of f32, added in the order of columns and of keys, as threads have them; sums are
divided by their terms' sum at the end. That is f32 as the operations say it, in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

from msgspec import Struct

from aotc.chips import BLOCK_SHARED_BYTES, WARP
from aotc.kernels.attention.problem import Attention
from aotc.kernels.attention.recognition import BATCH, KEY, QUERY
from aotc.kernels.attention.simt.softmax import Rows, Softmax
from aotc.kernels.attention.simt.tiles import (
    BITS,
    GROUP,
    RUN,
    Tile,
    Tiles,
    Variant,
    column_groups,
    copied_lanes,
    copied_rows,
    is_possible,
    lane_place,
    row_offsets,
)
from aotc.kernels.indices import Index
from aotc.kernels.matmul.problem import Matrix, convert
from aotc.kernels.matmul.wgmma.tiles import is_aligned
from aotc.kernels.writer import Buffer, Writer

NAME = "multiply-adds"
ELEMENT = "f32"


def can_take(problem: Attention, variant: Variant, shared_bytes: int = BLOCK_SHARED_BYTES) -> bool:
    """Whether the kernel is right for the problem, on a GPU of so much shared memory a block."""
    depth = problem.depth
    matrices = (problem.q, problem.k, problem.v, problem.o)
    return (
        depth is not None
        and 0 < depth <= 256
        and is_possible(variant, depth)
        and all(matrix.element == ELEMENT for matrix in matrices)
        and not any(matrix.transposed for matrix in matrices)
        and problem.scale > 0
        and Tiles.of(variant, depth).bytes <= shared_bytes
    )


def function(problem: Attention, variant: Variant, name: str) -> str:
    """`func.func @name(%q, %k, %v, %c)`, with `%m` where there is a mask, which launches the
    kernel; C is O."""
    return _Kernel(problem, variant).text(name)


class _Operand(Struct, frozen=True):
    """A matrix in memory: `batch` is the place of the tile's one, `column` its first column; an
    access has `width` elements at most."""

    buffer: Buffer
    batch: Index
    column: Index
    width: int


class _Kernel:
    """The function's text, part by part. Names of values that its parts share are its members."""

    def __init__(self, problem: Attention, variant: Variant) -> None:
        self.problem, self.variant = problem, variant
        self.depth = problem.depth or 0
        self.tiles = Tiles.of(variant, self.depth)
        self.w = Writer()
        self.columns = list(column_groups(variant, self.depth))
        self.softmax = Softmax(
            self.w, problem.scale, BITS[variant.across][1], masked=problem.mask is not None
        )

    def text(self, name: str) -> str:
        w, problem, variant = self.w, self.problem, self.variant
        types = {"q": problem.q.type, "k": problem.k.type, "v": problem.v.type, "c": problem.o.type}
        if problem.mask is not None:
            types["m"] = problem.mask.type
        self.queries = self._size("%q", problem.q)
        self.keys = self._size("%k", problem.k)
        self.batches: Index = problem.batch if problem.batch is not None else w.multiply(
            w.dim("%q", problem.q.type, 0), max(problem.heads[0], 1)
        )  # fmt: skip
        self.down = w.divide_up(self.queries, variant.m)
        blocks = w.multiply(self.down, self.batches)
        w.launch(blocks, variant.threads, self.tiles.bytes, self._body)
        w.line("return")
        arguments = ", ".join(f"%{key}: {type_}" for key, type_ in types.items())
        return f"func.func @{name}({arguments}) {{\n{w.text()}\n}}\n"

    def _size(self, name: str, matrix: Matrix) -> Index:
        known = matrix.sizes[0]
        return known if known is not None else self.w.dim(name, matrix.type, 1)

    # --- The kernel ----------------------------------------------------------------------

    def _body(self) -> None:
        w, variant = self.w, self.variant
        self._find_tile()
        self._find_part()
        self.q_tile, self.k_tile, self.v_tile, self.terms = (
            w.shared(tile.offset, (tile.rows, tile.pitch), ELEMENT)
            for tile in (self.tiles.q, self.tiles.k, self.tiles.v, self.tiles.terms)
        )
        self._copy_q(self._operand("%q", 0))
        k = self._operand("%k", 1)
        self.copy_k = partial(self._copy, k, self.tiles.k, self.k_tile)
        self.copy_v = partial(self._copy, self._operand("%v", 2), self.tiles.v, self.v_tile)
        self.group = self.copy_k(0, self.keys)

        seen = self.keys
        if self.problem.causal:
            seen = w.minimum(seen, w.add(self.first_row, variant.m))
        blocks = w.divide_up(seen, variant.keys)
        whole = w.divide(self.keys, variant.keys)
        if self.problem.causal:
            whole = w.minimum(whole, w.divide(w.add(self.first_row, 1), variant.keys))
        nothing = self.softmax.nothing(variant.rows)
        state = [*nothing.largest, *nothing.sums]
        state += [w.zero(ELEMENT)] * (variant.rows * self.depth // variant.across)
        state = self._over_blocks(state, 0, whole, hides=False)
        if not isinstance(blocks, int) or blocks != whole:
            state = self._over_blocks(state, whole, blocks, hides=True)
        self._store(state)

    def _find_tile(self) -> None:
        """Tiles are counted over matrices, then down; causal ones up, as the last rows have the
        most keys, and what takes longest comes first."""
        w = self.w
        tile, self.batch = w.unravel("%block", self.batches)
        if self.problem.causal:
            tile = w.subtract(w.subtract(self.down, 1), tile)
        self.first_row = w.multiply(tile, self.variant.m)

    def _find_part(self) -> None:
        """The thread's rows of the tile, and its lane's column."""
        w, variant = self.w, self.variant
        warp, lane = w.unravel("%thread", WARP)
        lane_row, self.lane_column = lane_place(w, lane, variant.across)
        warp_row = w.multiply(warp, variant.warp_rows)
        # Behind the warp's last row.
        self.warp_end = w.add(warp_row, variant.warp_rows)
        first = w.add(warp_row, w.multiply(lane_row, GROUP))
        self.rows = [w.add(first, offset) for offset in row_offsets(variant)]
        self.row_groups = self.rows[::GROUP]

    def _operand(self, name: str, number: int) -> _Operand:
        w, problem = self.w, self.problem
        matrix = (problem.q, problem.k, problem.v, problem.o)[number]
        buffer = Buffer(name, matrix.type, matrix.element)
        heads, width = problem.heads[number], GROUP if is_aligned(matrix) else 1
        if not heads:
            return _Operand(buffer, self.batch, 0, width)
        batch, head = w.unravel(self.batch, heads)
        return _Operand(buffer, batch, w.multiply(head, self.depth), width)

    def _copy_q(self, q: _Operand) -> None:
        """Begins to copy the tile's rows, turned; those behind the last one are 0."""
        w, variant = self.w, self.variant
        rows = variant.threads // RUN
        own_row, own_column = w.unravel("%thread", RUN)
        first_row, first_column = w.add(self.first_row, own_row), w.add(q.column, own_column)
        is_whole = isinstance(self.queries, int) and self.queries % variant.m == 0
        for number, piece in product(range(variant.m // rows), range(self.depth // RUN)):
            row = w.add(first_row, number * rows)
            there = 1 if is_whole else w.select(w.less(row, self.queries), 1, 0)
            at = [q.batch, row, w.add(first_column, piece * RUN)]
            to = [w.add(own_column, piece * RUN), w.add(own_row, number * rows)]
            w.copy_async(q.buffer, at, self.q_tile, to, 1, there)

    def _copy(self, operand: _Operand, tile: Tile, to: Buffer, first: Index, limit: Index) -> str:
        """Begins to copy rows of a matrix from `first` on; those from `limit` on are 0, and perhaps
        none is in front of that."""
        w, variant, width = self.w, self.variant, operand.width
        lanes = copied_lanes(self.depth, width)
        rows = copied_rows(variant, self.depth, width)
        own_row, own_group = w.unravel("%thread", lanes)
        own_column = w.multiply(own_group, width)
        # What is known is added last: so it is in the instructions, and needs no registers.
        first_row, first_column = w.add(first, own_row), w.add(operand.column, own_column)
        is_whole = isinstance(limit, int) and limit % tile.rows == 0
        all_there = w.select(w.less(first, limit), width, 0) if is_whole else 0

        def copy() -> None:
            for number, piece in product(
                range(max(1, tile.rows // rows)), range(self.depth // width // lanes)
            ):
                row = w.add(own_row, number * rows)
                column = w.add(own_column, piece * lanes * width)
                source_row, source_column = (
                    w.add(first_row, number * rows),
                    w.add(first_column, piece * lanes * width),
                )
                there = all_there if is_whole else w.select(w.less(source_row, limit), width, 0)
                at = [operand.batch, source_row, source_column]
                w.copy_async(operand.buffer, at, to, [row, column], width, there)

        # Of a narrow tile's rows there may be fewer than threads for them.
        w.where(None if rows <= tile.rows else w.less(own_row, tile.rows), copy)
        return w.end_copies()

    # --- Blocks of keys ------------------------------------------------------------------

    def _over_blocks(
        self, state: list[str], start: Index, stop: Index, *, hides: bool
    ) -> list[str]:
        """The state behind those blocks: the largest scores of rows, their sums, and O's."""
        if start == stop:
            return state
        body = partial(self._add_block, hides=hides)
        return self.w.loop(start, stop, 1, state, [ELEMENT] * len(state), body)

    def _add_block(self, number: str, state: list[str], *, hides: bool) -> list[str]:
        w, variant = self.w, self.variant
        count = variant.rows
        rows, sums = Rows(state[:count], state[count : 2 * count]), state[2 * count :]
        first = w.multiply(number, variant.keys)
        # K is there, and all have read V's block before.
        self._await()
        self.copy_v(first, self.keys)
        is_seen = None
        if hides and self.problem.causal:
            is_seen = w.less(first, w.add(self.first_row, self.warp_end))
        made = w.choose(
            *(is_seen, [ELEMENT] * (3 * count)),
            partial(self._make_terms, rows, first, hides=hides),
            # No row of the warp sees a key.
            lambda: [*rows.largest, *rows.sums, *rows.sums],
        )
        # V is there, and all have read K.
        self._await()
        self.copy_k(w.add(first, variant.keys), self.keys)
        sums = w.choose(
            *(is_seen, [ELEMENT] * len(sums)),
            partial(self._add_products, sums, made[2 * count :]),
            lambda: sums,
        )
        return [*made[: 2 * count], *sums]

    def _make_terms(self, rows: Rows, first: Index, *, hides: bool) -> list[str]:
        """Puts the terms of the block that begins with key `first` where others find them; then
        largest scores, sums, and factors of what was summed before."""
        scores = self._scores()
        if self.problem.mask is not None:
            scores = self._masked(scores, first)
        largest, totals, factors = [], [], []
        for i, row in enumerate(scores):
            if hides:
                row = self.softmax.hide(row, self._end(i, first), self.variant.across)
            terms, highest, total, factor = self.softmax.add(row, rows.largest[i], rows.sums[i])
            largest.append(highest)
            totals.append(total)
            factors.append(factor)
            self._put(i, terms)
        return [*largest, *totals, *factors]

    def _await(self) -> None:
        self.w.wait_copies(self.group, 0)
        self.w.barrier()

    def _scores(self) -> list[list[str]]:
        """Q · Kᵀ: of each row, this thread's keys."""
        w, variant = self.w, self.variant
        count, keys = variant.rows, variant.thread_keys
        k_rows = [w.add(self.lane_column, variant.across * i) for i in range(keys)]

        def turn(column: str, given: list[str]) -> list[str]:
            scores = list(given)
            for step in range(variant.steps):
                place = w.add(column, GROUP * step)
                k = [w.load(self.k_tile, [row, place], GROUP) for row in k_rows]
                for part in range(GROUP):
                    q = self._read(self.q_tile, w.add(place, part), self.row_groups)
                    for i, row in _there_and_back(keys, count):
                        at = row * keys + i
                        scores[at] = self._fma(q[row], k[i][part], scores[at])
            return scores

        zeros = [w.zero(ELEMENT)] * (count * keys)
        step = GROUP * variant.steps
        done = w.loop(0, self.depth, step, zeros, [ELEMENT] * len(zeros), turn)
        return [done[row * keys : (row + 1) * keys] for row in range(count)]

    def _put(self, row: int, terms: list[str]) -> None:
        """A row's terms to shared memory, a group of them beside that of the next lane."""
        w, variant = self.w, self.variant
        group = variant.key_group
        for first in range(0, len(terms), group):
            column = w.add(w.multiply(self.lane_column, group), first * variant.across)
            w.store(self.terms, [self.rows[row], column], terms[first : first + group])

    def _add_products(self, sums: list[str], factors: list[str]) -> list[str]:
        """O's sums, row by row, times their factors, with terms · V."""
        w, variant = self.w, self.variant
        group, across = variant.key_group, variant.across
        each = len(sums) // variant.rows
        sums = [
            w.value(f"arith.mulf {value}, {factors[i // each]} : f32")
            for i, value in enumerate(sums)
        ]
        columns = [
            (w.add(w.multiply(self.lane_column, width), first), width)
            for first, width in self.columns
        ]

        def turn(lane: str, given: list[str]) -> list[str]:
            """The keys of the lanes of a column."""
            added = list(given)
            for first in range(0, variant.thread_keys, group):
                column = w.add(w.multiply(lane, group), first * across)
                terms = [w.load(self.terms, [row, column], group) for row in self.rows]
                for part in range(group):
                    key = w.add(lane, (first + part) * across)
                    v = [
                        value
                        for place, width in columns
                        for value in w.load(self.v_tile, [key, place], width)
                    ]
                    for row, i in _there_and_back(variant.rows, each):
                        at = row * each + i
                        added[at] = self._fma(terms[row][part], v[i], added[at])
            return added

        return w.loop(0, across, 1, sums, [ELEMENT] * len(sums), turn)

    def _read(self, tile: Buffer, row: Index, columns: Sequence[Index]) -> list[str]:
        """Groups of neighbours in a row."""
        found = [self.w.load(tile, [row, column], GROUP) for column in columns]
        return [value for group in found for value in group]

    def _fma(self, x: str, y: str, total: str) -> str:
        return self.w.value(f"math.fma {x}, {y}, {total} : f32")

    # --- Masks ---------------------------------------------------------------------------

    def _end(self, row: int, first: Index) -> str:
        """Behind the last key that a row sees, counted from this thread's first one: an i32, which
        may be below 0."""
        w = self.w
        end = self.keys
        if self.problem.causal:
            end = w.minimum(end, w.add(w.add(self.first_row, self.rows[row]), 1))
        place = w.subtract(w.subtract(end, first), self.lane_column)
        return w.value(f"arith.index_cast {w.index(place)} : index to i32")

    def _masked(self, scores: list[list[str]], first: Index) -> list[list[str]]:
        """With the mask. Rows and keys behind the last one read that one's: they are not stored, or
        hidden."""
        w, mask = self.w, self.problem.mask
        assert mask is not None
        assert mask.places[-1] == KEY
        buffer = Buffer("%m", mask.type, mask.element)
        last_row, last_key = w.subtract(self.queries, 1), w.subtract(self.keys, 1)
        keys = [
            w.minimum(w.add(w.add(first, self.lane_column), self.variant.across * i), last_key)
            for i in range(self.variant.thread_keys)
        ]
        found = []
        for own, row in zip(scores, self.rows, strict=True):
            query = w.minimum(w.add(self.first_row, row), last_row)
            outer = [self._mask_place(place, query) for place in mask.places[:-1]]
            masked = []
            for score, key in zip(own, keys, strict=True):
                [value] = w.load(buffer, [*outer, key])
                wide = convert(w, value, mask.element, ELEMENT)
                masked.append(self.softmax.with_mask(score, wide))
            found.append(masked)
        return found

    def _mask_place(self, place: str, query: Index) -> Index:
        w = self.w
        if place == QUERY:
            return query
        if place == "0":
            return 0
        if place == BATCH:
            return self.batch
        sign, number = place[len(BATCH)], int(place[len(BATCH) + 1 :])
        return (w.divide if sign == "/" else w.remainder)(self.batch, number)

    # --- To memory -----------------------------------------------------------------------

    def _store(self, state: list[str]) -> None:
        w, count = self.w, self.variant.rows
        o, sums = self._operand("%c", 3), state[2 * count :]
        each = len(sums) // count
        for i, row in enumerate(self.rows):
            inverse = self.softmax.inverse(
                state[i], state[count + i], masked_is_zero=self.problem.masked_rows_are_zero
            )
            own = sums[i * each : (i + 1) * each]
            values = [w.value(f"arith.mulf {value}, {inverse} : f32") for value in own]
            at = w.add(self.first_row, row)
            is_whole = isinstance(self.queries, int) and self.queries % self.variant.m == 0
            is_there = None if is_whole else w.less(at, self.queries)
            w.where(is_there, partial(self._store_row, o, at, values))

    def _store_row(self, o: _Operand, row: Index, values: list[str]) -> None:
        w, done = self.w, 0
        for first, width in self.columns:
            column = w.add(w.add(o.column, first), w.multiply(self.lane_column, width))
            step = min(width, o.width)
            for i in range(0, width, step):
                at = [o.batch, row, w.add(column, i)]
                w.store(o.buffer, at, values[done + i : done + i + step])
            done += width


def _there_and_back(count: int, each: int) -> Iterator[tuple[int, int]]:
    """Pairs of which each has a part of the last one: that factor's register is read once."""
    for i in range(count):
        for j in range(each)[:: -1 if i % 2 else 1]:
            yield i, j
