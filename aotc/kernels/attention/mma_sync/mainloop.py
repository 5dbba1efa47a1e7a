"""The mainloop of a block over K and V, in tiles of some keys, from the last tile to the first.

For each tile of keys, scores are computed, P from the scores, and P · V. The scores of the next
tile are computed together with the P of this one, so that the tensor cores stay busy. V is copied
one tile before it is used, and K two tiles before.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Float, Number, Scalar, compare, maximum, minimum
from aotc.kernels.attention.masks import MaskReader
from aotc.kernels.attention.mma_sync.mma import TiledMma
from aotc.kernels.attention.mma_sync.operands import Operand
from aotc.kernels.attention.mma_sync.tiles import TILE, Tile, Variant
from aotc.kernels.attention.problem import Attention
from aotc.kernels.attention.softmax import Rows, Softmax
from aotc.kernels.tensor_core import commit_group, wait_group


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
    """The mainloop of a tile of O, over the tiles of keys."""

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
        """Prepares the mainloop. `warp_row`: the warp's first row in the tile. `queries` and
        `keys`: their numbers."""
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
        masked_tiles = self._masked_tiles(tile)
        first: Number = 0
        if masked_tiles is not None:
            first = minimum(masked_tiles, self.last)
            state = self._over(state, 0, first, masks_keys=True)
        state = self._over(state, first, self.last, masks_keys=False)
        self._wait()
        stage = self.b.index(self.last & 1)
        row = self.b.zero("i32")
        state = self._accumulate(state, stage, row, masks_keys=masked_tiles is not None)
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
        """Starts to copy the first tiles of K and V, and computes the first scores."""
        b, variant = self.b, self.variant
        row = self.last * variant.keys
        queries = self.problem.q.sizes[0]
        is_whole = queries is not None and queries % variant.m == 0
        self.q.copy(tile.row, 0, None if is_whole else self.queries)
        self.k.copy(row, 0, self._key_count)
        # The token of any group serves to wait for all.
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
        """The number of keys, if the last tile may have fewer keys; otherwise None."""
        known = self.problem.k.sizes[0]
        is_whole = known is not None and known % self.variant.keys == 0
        return None if is_whole else self.keys

    def _masked_tiles(self, tile: Tile) -> Number | None:
        """The number of tiles with keys that some rows do not attend to; None if there are none."""
        if not self.problem.causal:
            return None if self._key_count is None else 1
        whole = (tile.row + 1) // self.variant.keys
        return maximum(self.count - minimum(whole, self.count), 1)

    def _over(self, state: _State, first: Number, end: Number, *, masks_keys: bool) -> _State:
        """The state after the tiles from `first` to `end`, which are numbered from the last tile
        down. `masks_keys`: some of their keys are masked."""
        with self.b.loop(first, end, 1, state.values) as loop:
            following = self._add_tile(state.like(loop.carried), loop.index, masks_keys=masks_keys)
            loop.next(following.values)
        return state.like(loop.results)

    def _add_tile(self, state: _State, j: Scalar, *, masks_keys: bool) -> _State:
        """The state after tile j: O with its P · V, and the scores of the next tile."""
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
        state = self._accumulate(state, stage, row, masks_keys=masks_keys)
        return _State(scores, state.rows, state.o)

    def _accumulate(self, state: _State, stage: Number, row: Number, *, masks_keys: bool) -> _State:
        """The state with the P · V of the tile whose first key is `row` added to O, and without
        scores. P is computed from the state's scores, and V is in `stage`."""
        words, all_rows, all_o = [], [], []
        for tile, scores in enumerate(state.scores):
            if self.mask_readers:
                mask = self.mask_readers[tile].read(row + self.softmax.column, self.variant.keys)
                scores = self.softmax.add_mask(scores, mask)
            if masks_keys:
                first_row = self.first_rows[tile] if self.problem.causal else None
                scores = self.softmax.mask_keys(scores, self.keys, row, first_row)
            p, rows, factors = self.softmax.update(scores, state.rows[tile])
            words.append(self.softmax.pack(p))
            all_rows.append(rows)
            all_o.append(self.softmax.rescale(state.o[tile], factors))
        return _State([], all_rows, self.mma.multiply_pv(stage, words, all_o))

    def _wait(self) -> None:
        """Waits until all copies of all threads have arrived, and all threads have read the
        previous tiles."""
        wait_group(self.b, self.group, 0)
        self.b.barrier()
