"""The two products of attention by mma.sync, with Q, K and V in shared memory, read by ldmatrix.

A warp has some tiles of 16 rows of Q. Of each, a thread has the scores, and the sums of O, of two
rows, 8 apart, and of two neighbours of each 8 columns: in the order that `softmax` has them.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotc.kernels.attention.mma_sync.operands import CHUNK, COLUMNS, Operand
from aotc.kernels.attention.mma_sync.tiles import TILE
from aotc.kernels.matmul.wgmma.tiles import Body

_SUMS = "vector<2x2xf32>"  # of 8 columns


class Products:
    """Writes them for a warp with `tiles` of Q's. A fragment is what a thread has of a factor."""

    def __init__(self, e: Body, q: Operand, k: Operand, v: Operand, tiles: int) -> None:
        self.e, self.q, self.k, self.v, self.tiles = e, q, k, v, tiles
        self.pair = f"vector<2x{q.matrix.element}>"
        self.left = f"vector<4x2x{q.matrix.element}>"
        self.right = f"vector<2x2x{q.matrix.element}>"

    def begin(self, lane: str, warp_row: str) -> None:
        """`warp_row`: the warp's first row in the tile."""
        e = self.e
        # A lane gives the address of a row of 8 elements, of one of four such matrices: beside each
        # other are the first and the third, or, of K, the first and the second.
        row, high = e.do("andi", lane, 15), e.do("shrui", lane, 4)
        beside = e.index(e.do("muli", high, CHUNK))
        self.q_at = e.index(e.do("addi", warp_row, row)), beside
        self.v_at = e.index(row), beside
        row = e.do("ori", e.do("andi", lane, 7), e.do("shli", high, 3))
        self.k_at = e.index(row), e.index(e.do("andi", lane, 8))

    def q_fragments(self) -> list[str]:
        """All of the warp's Q: of each tile, and of each 16 columns."""
        steps = range(self.q.padded // COLUMNS)
        return [self._q(tile, step) for tile in range(self.tiles) for step in steps]

    def multiply_q(self, stage: str, held: Sequence[str]) -> list[list[str]]:
        """The scores of each tile: Q · Kᵀ with the block of K in a stage. `held`: Q's fragments, if
        they are in registers."""
        e = self.e
        nothing = e.value(f"arith.constant dense<0.0> : {_SUMS}")
        scores = [[nothing] * (self.k.rows // 8) for _ in range(self.tiles)]
        steps = self.q.padded // COLUMNS
        for step in range(steps):
            left = [
                held[tile * steps + step] if held else self._q(tile, step)
                for tile in range(self.tiles)
            ]
            for two in range(self.k.rows // 16):
                place = (16 * two, COLUMNS * step)
                four = self._load(self.k, stage, self.k_at, place, is_transposed=False)
                self._add(scores, left, self._halves(four), two)
        return [self._parts(tile) for tile in scores]

    def multiply_v(
        self, stage: str, terms: Sequence[Sequence[str]], sums: Sequence[Sequence[str]]
    ) -> list[list[str]]:
        """sums + terms · V with the block of V in a stage. `terms`: of each tile the words of
        `softmax`."""
        added = [self._vectors(one) for one in sums]
        left = [self._terms(words) for words in terms]
        for step in range(self.v.rows // 16):
            own = [fragments[step] for fragments in left]
            for two in range(self.v.padded // 16):
                place = (16 * step, 16 * two)
                four = self._load(self.v, stage, self.v_at, place, is_transposed=True)
                self._add(added, own, self._halves(four), two)
        return [self._parts(tile) for tile in added]

    def _q(self, tile: int, step: int) -> str:
        place = (TILE * tile, COLUMNS * step)
        return self._load(self.q, self.e.constant(0), self.q_at, place, is_transposed=False)

    def _load(
        self,
        operand: Operand,
        stage: str,
        own: tuple[str, str],
        place: tuple[int, int],
        *,
        is_transposed: bool,
    ) -> str:
        e = self.e
        row, column = (e.do("addi", at, by, "index") for at, by in zip(own, place, strict=True))
        return e.value(
            f"nvgpu.ldmatrix {operand.ring}[{stage}, {row}, {column}] "
            f"{{numTiles = 4 : i32, transpose = {str(is_transposed).lower()}}} "
            f": {operand.ring_type} -> {self.left}"
        )

    def _halves(self, four: str) -> list[str]:
        """The second factors of two times 8 columns."""
        return [
            self.e.value(
                f"vector.extract_strided_slice {four} {{offsets = [{2 * half}], sizes = [2], "
                f"strides = [1]}} : {self.left} to {self.right}"
            )
            for half in range(2)
        ]

    def _terms(self, words: Sequence[str]) -> list[str]:
        """First factors, of every 16 keys, of four words each."""
        e = self.e
        nothing = e.value(f"arith.constant dense<0.0> : {self.left}")
        found = []
        for first in range(0, len(words), 4):
            fragment = nothing
            for number, word in enumerate(words[first : first + 4]):
                pair = e.value(f"llvm.bitcast {word} : i32 to {self.pair}")
                fragment = e.value(
                    f"vector.insert {pair}, {fragment} [{number}] : {self.pair} into {self.left}"
                )
            found.append(fragment)
        return found

    def _add(
        self, sums: list[list[str]], left: Sequence[str], right: Sequence[str], two: int
    ) -> None:
        """To sums of two times 8 columns, in place."""
        for own, a in zip(sums, left, strict=True):
            for half, b in enumerate(right):
                number = 2 * two + half
                own[number] = self.e.value(
                    f"nvgpu.mma.sync ({a}, {b}, {own[number]}) {{mmaShape = [16, 8, 16]}} "
                    f": ({self.left}, {self.right}, {_SUMS}) -> {_SUMS}"
                )

    def _parts(self, vectors: Sequence[str]) -> list[str]:
        return [
            self.e.value(f"vector.extract {one}[{i // 2}, {i % 2}] : f32 from {_SUMS}")
            for one in vectors
            for i in range(4)
        ]

    def _vectors(self, parts: Sequence[str]) -> list[str]:
        return [
            self.e.value(f"vector.from_elements {', '.join(parts[i : i + 4])} : {_SUMS}")
            for i in range(0, len(parts), 4)
        ]
