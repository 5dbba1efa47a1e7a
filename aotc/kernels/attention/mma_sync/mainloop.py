"""How a block of threads goes over K and V, in tiles of some keys, the last one first.

Of a tile of keys, scores are made, become P, and those are multiplied by V. The scores of the next
tile are made beside the P of this one, so that the tensor cores have something to do meanwhile; V
is copied a tile before it is needed, and K two.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from aotc.builder import Buffer, Builder
from aotc.kernels.attention.masks import MaskReader
from aotc.kernels.attention.mma_sync.mma import TiledMma
from aotc.kernels.attention.mma_sync.operands import Operand
from aotc.kernels.attention.mma_sync.tiles import TILE, Tile, Variant
from aotc.kernels.attention.problem import Attention
from aotc.kernels.attention.softmax import Rows, Softmax
from aotc.kernels.tensor_core import commit_group, wait_group
from aotc.numbers import Float, Number, Scalar, compare, maximum, minimum


class _State(Struct, frozen=True):
    """The loop-carried values, for each of the warp's tiles: the scores of the tile of keys whose P
    is computed next (or none), the rows, and the accumulators of O."""

    scores: list[list[Float]]
    rows: list[Rows]
    o: list[list[Float]]

    @property
    def values(self) -> list[Float]:
        return [
            one for part in (*self.scores, *(r.values for r in self.rows), *self.o) for one in part
        ]

    def like(self, values: Sequence[Float]) -> _State:
        """The state with these values, in the order of `values`."""
        rest = iter(values)
        scores = [[next(rest) for _ in part] for part in self.scores]
        rows = [Rows.of([next(rest) for _ in part.values]) for part in self.rows]
        return _State(scores, rows, [[next(rest) for _ in part] for part in self.o])


class Mainloop:
    """The mainloop of a tile of O: goes over the tiles of keys."""

    def __init__(
        self,
        b: Builder,
        problem: Attention,
        variant: Variant,
        operands: tuple[Operand, Operand, Operand],
        masks: Sequence[Buffer],
    ) -> None:
        self.b, self.problem, self.variant = b, problem, variant
        self.operands, self.masks = operands, masks
        self.q, self.k, self.v = operands

    def begin(
        self, tile: Tile, lane: Scalar, warp_row: Number, queries: Scalar, keys: Scalar
    ) -> None:
        """`warp_row`: the warp's first row in the tile; `queries` and `keys`: how many there
        are."""
        b, problem, variant = self.b, self.problem, self.variant
        self.queries, self.keys = queries, keys
        self.mma = TiledMma(b, self.operands, variant.tiles, lane, warp_row)
        self.softmax = Softmax(b, problem.scale, problem.q.element, lane, problem.mask)
        row = tile.row + warp_row + self.softmax.row
        self.first_rows = [row + TILE * i for i in range(variant.tiles)]
        self.mask_readers = [
            MaskReader(b, problem.mask, buffer, tile.batch, first_row, (queries, keys))
            for first_row in self.first_rows
            for buffer in self.masks
            if problem.mask is not None
        ]
        seen: Number = keys
        if problem.causal:
            seen = minimum(seen, tile.row + variant.m)
        self.count = (seen + (variant.keys - 1)) // variant.keys
        self.last = self.count - 1

    def run(self, tile: Tile) -> list[list[Float]]:
        """The rows of O of each of the warp's tiles."""
        state = self._prologue(tile)
        hidden = self._hidden(tile)
        first: Number = 0
        if hidden is not None:
            first = minimum(hidden, self.last)
            state = self._over(state, 0, first, hides=True)
        state = self._over(state, first, self.last, hides=False)
        self._wait()
        stage = self.b.index(self.last & 1)
        row = self.b.zero("i32")
        state = self._accumulate(state, stage, row, hides=hidden is not None)
        return [
            self.softmax.rescale(
                o,
                self.softmax.inverse_row_sums(
                    rows, empty_is_zero=self.problem.masked_rows_are_zero
                ),
            )
            for rows, o in zip(state.rows, state.o, strict=True)
        ]

    def _prologue(self, tile: Tile) -> _State:
        """Begins to copy the first tiles of K and V, and makes the first scores."""
        b, variant = self.b, self.variant
        row = self.last * variant.keys
        queries = self.problem.q.sizes[0]
        is_whole = queries is not None and queries % variant.m == 0
        self.q.copy(tile.row, 0, None if is_whole else self.queries)
        self.k.copy(row, 0, self._key_count)
        # Any group will do to wait for all.
        self.group = commit_group(b)
        self._wait()
        self.held = self.mma.load_q() if variant.holds_q else []
        self.v.copy(row, 0, self._key_count)
        with b.where(compare("ne", self.last, 0)):
            self.k.copy(row - variant.keys, 1)
        commit_group(b)
        scores = self.mma.multiply_qk(0, self.held)
        o = [b.zero("f32")] * (self.v.padded // 2)
        rows = self.softmax.initial_rows()
        return _State(scores, [rows] * variant.tiles, [o] * variant.tiles)

    @property
    def _key_count(self) -> Scalar | None:
        """How many keys there are, if the last tile may have fewer."""
        known = self.problem.k.sizes[0]
        is_whole = known is not None and known % self.variant.keys == 0
        return None if is_whole else self.keys

    def _hidden(self, tile: Tile) -> Number | None:
        """How many tiles have keys that are not seen by all rows; None for none at all."""
        if not self.problem.causal:
            return None if self._key_count is None else 1
        whole = (tile.row + 1) // self.variant.keys
        return maximum(self.count - minimum(whole, self.count), 1)

    def _over(self, state: _State, first: Number, end: Number, *, hides: bool) -> _State:
        """The state behind the tiles of those numbers, counted from the last one down. `hides`:
        some of their keys are not seen."""
        with self.b.loop(first, end, 1, state.values) as loop:
            following = self._add_tile(state.like(loop.carried), loop.index, hides=hides)
            loop.next(following.values)
        return state.like(loop.results)

    def _add_tile(self, state: _State, j: Scalar, *, hides: bool) -> _State:
        """Tile j's P, multiplied by V, and the next one's scores."""
        b, keys = self.b, self.variant.keys
        number = self.last - j
        row = number * keys
        following = row - keys
        odd = j & 1
        stage, other = b.index(odd), b.index(odd ^ 1)
        self._wait()
        with b.where(compare("ugt", number, 1)):
            self.k.copy(following - keys, stage)
        self.v.copy(following, other)
        commit_group(b)
        scores = self.mma.multiply_qk(other, self.held)
        state = self._accumulate(state, stage, row, hides=hides)
        return _State(scores, state.rows, state.o)

    def _accumulate(self, state: _State, stage: Number, row: Number, *, hides: bool) -> _State:
        """O with P · V of a tile whose first key is `row`, of the state's scores and V in the
        stage; without scores."""
        words, all_rows, all_o = [], [], []
        for tile, scores in enumerate(state.scores):
            if self.mask_readers:
                mask = self.mask_readers[tile].read(row + self.softmax.column, self.variant.keys)
                scores = self.softmax.add_mask(scores, mask)
            if hides:
                first_row = self.first_rows[tile] if self.problem.causal else None
                scores = self.softmax.hide(scores, self.keys, row, first_row)
            p, rows, factors = self.softmax.update(scores, state.rows[tile])
            words.append(self.softmax.pack(p))
            all_rows.append(rows)
            all_o.append(self.softmax.rescale(state.o[tile], factors))
        return _State([], all_rows, self.mma.multiply_pv(stage, words, all_o))

    def _wait(self) -> None:
        """Until all that is under way is there, for all, and all have read what was before."""
        wait_group(self.b, self.group, 0)
        self.b.barrier()
