"""How a block of threads goes over K and V, in blocks of keys, the last one first.

Of a block of keys, scores are made, become terms, and those sums of O. The scores of the next block
are made beside the terms of this one, so that the tensor cores have something to do meanwhile; V
comes a block before it is needed, and K two.
"""

from __future__ import annotations

from msgspec import Struct

from aotc.kernels.attention.masks import MaskReader
from aotc.kernels.attention.mma_sync.mma import Products
from aotc.kernels.attention.mma_sync.operands import Operand
from aotc.kernels.attention.mma_sync.tiles import TILE, Tile, Variant
from aotc.kernels.attention.problem import Attention
from aotc.kernels.attention.softmax import Rows, Softmax
from aotc.kernels.matmul.wgmma.tiles import Body


class _State(Struct, frozen=True):
    """Of each of the warp's tiles: the scores of a block whose terms come next (or none), its rows,
    and the sums of O."""

    scores: tuple[tuple[str, ...], ...]
    rows: tuple[Rows, ...]
    sums: tuple[tuple[str, ...], ...]

    @property
    def values(self) -> list[str]:
        of_rows = [(*rows.largest, *rows.sums) for rows in self.rows]
        return [value for part in (*self.scores, *of_rows, *self.sums) for value in part]

    def named(self, names: list[str]) -> _State:
        """The same with other names."""
        rest = iter(names)

        def parts(like: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
            return tuple(tuple(next(rest) for _ in part) for part in like)

        scores = parts(self.scores)
        rows = [(next(rest), next(rest), next(rest), next(rest)) for _ in self.rows]
        return _State(scores, tuple(Rows((a, b), (c, d)) for a, b, c, d in rows), parts(self.sums))


class Blocks:
    """Writes it for a tile of O."""

    def __init__(
        self, e: Body, problem: Attention, variant: Variant, operands: tuple[Operand, ...]
    ) -> None:
        self.e, self.problem, self.variant = e, problem, variant
        self.q, self.k, self.v = operands
        self.products = Products(e, self.q, self.k, self.v, variant.tiles)
        mask = problem.mask
        self.softmax = Softmax(e, problem.scale, problem.q.element, masked=mask is not None)
        self.masks = [
            MaskReader(e, mask, variant.keys) for _ in range(variant.tiles) if mask is not None
        ]

    def begin(self, tile: Tile, lane: str, warp_row: str, sizes: tuple[str, str]) -> None:
        """`warp_row`: the warp's first row in the tile; `sizes`: how many queries and keys there
        are."""
        e, keys = self.e, self.variant.keys
        self.queries, self.keys = sizes
        self.products.begin(lane, warp_row)
        self.softmax.begin(lane)
        row = e.do("addi", e.do("addi", tile.row, warp_row), self.softmax.row)
        self.first_rows = [e.do("addi", row, TILE * i) for i in range(self.variant.tiles)]
        for mask, first_row in zip(self.masks, self.first_rows, strict=False):
            both = (first_row, e.do("addi", first_row, 8))
            mask.begin_tile(tile.batch, both, sizes)
        seen = self.keys
        if self.problem.causal:
            seen = e.do("minui", seen, e.do("addi", tile.row, self.variant.m))
        self.count = e.do("divui", e.do("addi", seen, keys - 1), keys)
        self.last = e.do("subi", self.count, 1)

    def compute(self, tile: Tile) -> list[list[str]]:
        """The rows of O of each of the warp's tiles."""
        e = self.e
        state = self._first(tile)
        begin, end = e.constant(0, "i32"), self.last
        hidden = self._hidden(tile)
        if hidden is not None:
            hidden = e.do("minui", hidden, end)
            state = self._over(state, (begin, hidden), hides=True)
            begin = hidden
        state = self._over(state, (begin, end), hides=False)
        self._await()
        stage = e.index(e.do("andi", self.last, 1))
        state = self._added(state, stage, e.constant(0, "i32"), hides=hidden is not None)
        return [
            self.softmax.scaled(list(sums), self._inverses(rows))
            for rows, sums in zip(state.rows, state.sums, strict=True)
        ]

    def _inverses(self, rows: Rows) -> tuple[str, str]:
        return self.softmax.inverses(rows, masked_are_zero=self.problem.masked_rows_are_zero)

    def _first(self, tile: Tile) -> _State:
        """What is before the first block."""
        e, variant = self.e, self.variant
        stage, row = e.constant(0), e.do("muli", self.last, variant.keys)
        queries = self.problem.q.sizes[0]
        is_whole = queries is not None and queries % variant.m == 0
        self.q.copy(e, tile.row, stage, None if is_whole else self.queries)
        self.k.copy(e, row, stage, self._key_count)
        # Any group will do to wait for all.
        self.group = self._commit()
        self._await()
        self.held = self.products.q_fragments() if variant.holds_q else []
        self.v.copy(e, row, stage, self._key_count)
        with e.block(f"scf.if {e.compare('ne', self.last, 0)}"):
            self.k.copy(e, e.do("subi", row, variant.keys), e.constant(1), None)
        self._commit()
        scores = self.products.multiply_q(stage, self.held)
        nothing = (e.constant("0.0", "f32"),) * (self.v.padded // 2)
        rows = self.softmax.nothing()
        return _State(
            tuple(map(tuple, scores)), (rows,) * variant.tiles, (nothing,) * variant.tiles
        )

    @property
    def _key_count(self) -> str | None:
        """How many keys there are, if the last block may have fewer."""
        known = self.problem.k.sizes[0]
        is_whole = known is not None and known % self.variant.keys == 0
        return None if is_whole else self.keys

    def _hidden(self, tile: Tile) -> str | None:
        """How many blocks have keys that are not seen by all rows; None for none at all."""
        e, keys = self.e, self.variant.keys
        if not self.problem.causal:
            return None if self._key_count is None else e.constant(1, "i32")
        whole = e.do("divui", e.do("addi", tile.row, 1), keys)
        hidden = e.do("subi", self.count, e.do("minui", whole, self.count))
        return e.do("maxui", hidden, 1)

    def _over(self, state: _State, numbers: tuple[str, str], *, hides: bool) -> _State:
        """The state behind the blocks of those numbers, counted from the last one down. `hides`:
        some of their keys are not seen."""
        e = self.e
        values = state.values
        names, done, j = [e.name() for _ in values], e.name(), e.name()
        pairs = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
        types = ", ".join(["f32"] * len(values))
        first, end = numbers
        one = e.constant(1, "i32")
        with e.block(
            f"{done}:{len(values)} = scf.for {j} = {first} to {end} step {one} "
            f"iter_args({pairs}) -> ({types}) : i32"
        ):
            following = self._turn(state.named(names), j, hides=hides)
            e.line(f"scf.yield {', '.join(following.values)} : {types}")
        return state.named([f"{done}#{i}" for i in range(len(names))])

    def _turn(self, state: _State, j: str, *, hides: bool) -> _State:
        """Block j's terms and sums, and the next one's scores."""
        e, keys = self.e, self.variant.keys
        number = e.do("subi", self.last, j)
        row = e.do("muli", number, keys)
        following = e.do("subi", row, keys)
        odd = e.do("andi", j, 1)
        stage, other = e.index(odd), e.index(e.do("xori", odd, 1))
        self._await()
        with e.block(f"scf.if {e.compare('ugt', number, 1)}"):
            self.k.copy(e, e.do("subi", following, keys), stage, None)
        self.v.copy(e, following, other, None)
        self._commit()
        scores = self.products.multiply_q(other, self.held)
        state = self._added(state, stage, row, hides=hides)
        return _State(tuple(map(tuple, scores)), state.rows, state.sums)

    def _added(self, state: _State, stage: str, row: str, *, hides: bool) -> _State:
        """With the sums of a block whose first key is `row`, of the state's scores and V in the
        stage; without scores."""
        e = self.e
        words, all_rows, all_sums = [], [], []
        for tile, given in enumerate(state.scores):
            scores = list(given)
            if self.masks:
                first = e.do("addi", row, self.softmax.column)
                scores = self.softmax.with_mask(scores, self.masks[tile].read(first))
            if hides:
                scores = self._hide(scores, row, self.first_rows[tile])
            terms, rows, factors = self.softmax.add(scores, state.rows[tile])
            words.append(self.softmax.words(terms))
            all_rows.append(rows)
            all_sums.append(self.softmax.scaled(list(state.sums[tile]), factors))
        sums = self.products.multiply_v(stage, words, all_sums)
        return _State((), tuple(all_rows), tuple(map(tuple, sums)))

    def _hide(self, scores: list[str], first: str, row: str) -> list[str]:
        """Without keys that are not there, and those behind a causal row."""
        e = self.e
        ends = []
        for half in range(2):
            end = self.keys
            if self.problem.causal:
                end = e.do("minui", end, e.do("addi", row, 8 * half + 1))
            ends.append(e.do("subi", end, first))
        return self.softmax.hide(scores, (ends[0], ends[1]))

    def _await(self) -> None:
        """Until all that is under way is there, for all, and all have read what was before."""
        self.e.line(f"nvgpu.device_async_wait {self.group} {{numGroups = 0 : i32}}")
        self.e.line("gpu.barrier")

    def _commit(self) -> str:
        """Makes a group of the copies that have begun."""
        return self.e.value("nvgpu.device_async_create_group {}")
