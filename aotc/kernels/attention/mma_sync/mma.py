"""The two matmuls of attention by mma.sync, with Q, K and V in shared memory, read by ldmatrix.

A warp has some tiles of 16 rows of Q. Of each tile, a thread has the scores and the accumulators of
O in two rows, which are 8 apart, and in two adjacent columns of each 8, in the order of `softmax`.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotc.builder import Builder
from aotc.builder.numbers import Float, Number, Scalar, Value
from aotc.kernels.attention.mma_sync.operands import CHUNK, COLUMNS, Operand
from aotc.kernels.attention.mma_sync.tiles import TILE
from aotc.kernels.tensor_core import Mma, fragment, halves, ldmatrix

_EIGHT = 8  # the columns of one mma.sync


class TiledMma:
    """The matmuls of a warp, for `tiles` tiles of 16 rows of Q."""

    def __init__(
        self,
        b: Builder,
        operands: tuple[Operand, Operand, Operand],
        tiles: int,
        lane: Scalar,
        warp_row: Number,
    ) -> None:
        """`warp_row`: the warp's first row in the tile."""
        self.b, self.tiles = b, tiles
        self.q, self.k, self.v = operands
        self.mma = Mma(16, _EIGHT, 16, self.q.matrix.element, "f32", 2)
        # A lane passes the address of a row of 8 elements, in one of four 8 x 8 matrices. The first
        # and the third matrix are side by side, or for K, the first and the second.
        row, high = lane & 15, lane >> 4
        beside = b.index(high * CHUNK)
        self.q_at = b.index(warp_row + row), beside
        self.v_at = b.index(row), beside
        self.k_at = b.index(lane & 7 | high << 3), b.index(lane & 8)

    def load_q(self) -> list[Value]:
        """Loads all of the warp's Q: for each tile, the fragments of each 16 columns."""
        steps = range(self.q.padded // COLUMNS)
        return [self._q(tile, step) for tile in range(self.tiles) for step in steps]

    def multiply_qk(self, stage: Number, held: Sequence[Value]) -> list[list[Float]]:
        """The scores of each tile: S = Q · Kᵀ with the tile of K in a stage. `held`: Q's fragments,
        if they are in registers."""
        zero = self.b.zero(self.mma.accumulator_type)
        scores = [[zero] * (self.k.rows // _EIGHT) for _ in range(self.tiles)]
        steps = self.q.padded // COLUMNS
        for step in range(steps):
            q = [
                held[tile * steps + step] if held else self._q(tile, step)
                for tile in range(self.tiles)
            ]
            for key in range(0, self.k.rows, 16):
                k = self._load(self.k, stage, self.k_at, (key, COLUMNS * step))
                self._multiply(scores, q, k, key // _EIGHT)
        return [self._elements(tile) for tile in scores]

    def multiply_pv(
        self, stage: Number, p: Sequence[Sequence[Scalar]], o: Sequence[Sequence[Float]]
    ) -> list[list[Float]]:
        """O + P · V with the tile of V in a stage. `p`: the words of `Softmax.pack`, for each tile
        of rows."""
        accumulators = [self._vectors(one) for one in o]
        fragments = [self._fragments(words) for words in p]
        for step in range(self.v.rows // 16):
            own = [one[step] for one in fragments]
            for column in range(0, self.v.padded, 16):
                place = (16 * step, column)
                v = self._load(self.v, stage, self.v_at, place, transpose=True)
                self._multiply(accumulators, own, v, column // _EIGHT)
        return [self._elements(tile) for tile in accumulators]

    def _q(self, tile: int, step: int) -> Value:
        return self._load(self.q, 0, self.q_at, (TILE * tile, COLUMNS * step))

    def _load(
        self,
        operand: Operand,
        stage: Number,
        own: tuple[Number, Number],
        place: tuple[int, int],
        *,
        transpose: bool = False,
    ) -> Value:
        """Loads four 8 x 8 matrices by ldmatrix."""
        row, column = (at + by for at, by in zip(own, place, strict=True))
        return ldmatrix(self.b, operand.ring, [stage, row, column], transpose=transpose)

    def _multiply(
        self, accumulators: list[list[Value]], a: Sequence[Value], four: Value, first: int
    ) -> None:
        """Adds the products to the accumulators of two groups of 8 columns, in place."""
        pair = halves(self.b, four)
        for own, left in zip(accumulators, a, strict=True):
            for number, right in enumerate(pair, first):
                own[number] = self.mma.multiply(self.b, left, right, own[number])

    def _fragments(self, words: Sequence[Scalar]) -> list[Value]:
        """The fragments of P: one for each 16 keys, of four words."""
        pair = f"vector<2x{self.mma.element}>"
        return [
            fragment(self.b, [self.b.op("llvm.bitcast", [word], pair) for word in words[i : i + 4]])
            for i in range(0, len(words), 4)
        ]

    def _elements(self, vectors: Sequence[Value]) -> list[Float]:
        return [self.b.extract(one, [i // 2, i % 2]) for one in vectors for i in range(4)]

    def _vectors(self, elements: Sequence[Float]) -> list[Value]:
        return [
            self.b.from_elements(elements[i : i + 4], self.mma.accumulator_type)
            for i in range(0, len(elements), 4)
        ]
