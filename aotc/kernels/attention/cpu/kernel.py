"""Attention for the CPU device: each block is one thread, which computes a tile of O.

A block iterates over K and V in tiles of some keys. For each, it computes S = Q · Kᵀ; P, the
softmax's numerators, which overwrite S; and O = O · rescale + P · V. The scores of one tile are in
memory that stays in the core's caches. Both matmuls use the mainloop of matmul kernels.

Everything is computed in f32. O is divided by the row sums at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import (
    Number,
    Value,
    compare,
    select,
    signed_minimum,
    unravel,
)
from aotc.kernels.attention.cpu.softmax import Softmax, Statistics, Tile
from aotc.kernels.attention.masks import outer_index
from aotc.kernels.attention.problem import Attention
from aotc.kernels.cpu.mainloop import ROWS_BEHIND, Factors, Mainloop
from aotc.kernels.cpu.packing import Part, pack_columns, pack_transposed
from aotc.kernels.cpu.vectors import VECTOR_BYTES, Vectors
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix

ELEMENT = "f32"
ELEMENTS = ("f32", "f16", "bf16")
_WIDTH = VECTOR_BYTES // ELEMENT_BYTES[ELEMENT]
# The smallest number of tiles for tiles of half (2) and of full (1) size, so that every core gets
# its share.
_ENOUGH_TILES = {2: 16, 1: 24}


class Variant(Struct, frozen=True):
    """Parameters of a kernel. A tile has at most `m` queries and `keys` keys. The mainloop computes
    groups of `rows` rows."""

    rows: int = 6
    m: int = 96
    keys: int = 256


class Memory(Struct, frozen=True):
    """The shapes of a block's f32 buffers: Q, scores, the tiles of K and V (which share memory), O,
    and the statistics of rows (the largest score, the sum and the factor)."""

    q: tuple[int, ...]
    scores: tuple[int, ...]
    k: tuple[int, ...]
    v: tuple[int, ...]
    o: tuple[int, ...]
    statistics: tuple[int, ...]

    @staticmethod
    def of(problem: Attention, variant: Variant) -> Memory:
        rows, keys, columns = variant.m, variant.keys, problem.head_dim or 0
        groups = -(-columns // _WIDTH)
        # Rows, and groups of columns, begin in different sets of a cache.
        return Memory(
            q=(rows, columns + _WIDTH),
            scores=(rows + ROWS_BEHIND, keys + _WIDTH),
            k=(keys // _WIDTH, columns + 1, _WIDTH),
            v=(groups, keys + 1, _WIDTH),
            o=(rows + ROWS_BEHIND, groups * _WIDTH),
            statistics=(rows,),
        )

    @property
    def bytes(self) -> int:
        return sum(self._sizes())

    def _sizes(self) -> list[int]:
        """The bytes of each buffer; K and V are one."""
        parts = (self.q, self.scores, self.o, *[self.statistics] * 3)
        elements = [*map(math.prod, parts), max(math.prod(self.k), math.prod(self.v))]
        return [-(-count // _WIDTH) * VECTOR_BYTES for count in elements]

    def buffers(self, b: Builder) -> Tiles:
        """Creates the buffers at the insertion point."""
        memory, sizes = b.shared_memory(), self._sizes()
        offsets = [sum(sizes[:number]) for number in range(len(sizes))]
        shapes = (self.q, self.scores, self.o, *[self.statistics] * 3, self.k, self.v)
        places = [*offsets, offsets[-1]]
        q, scores, o, row_max, row_sum, factor, k, v = (
            b.shared_buffer(memory, offset, shape, ELEMENT)
            for offset, shape in zip(places, shapes, strict=True)
        )
        return Tiles(q, scores, k, v, o, Statistics(row_max, row_sum, factor))


class Tiles(Struct, frozen=True):
    """A block's buffers, see `Memory`."""

    q: Buffer
    scores: Buffer
    k: Buffer
    v: Buffer
    o: Buffer
    statistics: Statistics


class Kernel(Vectors):
    """Builds the kernel. Values that its methods share are members."""

    def __init__(
        self, b: Builder, problem: Attention, variant: Variant, arguments: Sequence[Value]
    ) -> None:
        super().__init__(b, ELEMENT)
        self.problem, self.variant = problem, variant
        self.arguments, self.head_dim = arguments, problem.head_dim or 0

    def build(self) -> None:
        b, p = self.b, self.problem
        q, k, _, _, *_ = self.arguments
        self.queries, self.keys = self._rows(q, p.q), self._rows(k, p.k)
        batches: Number = b.dim(q, 0) * max(p.heads[0], 1) if p.batch is None else p.batch
        rows = self._tile_rows(batches)
        self.tiles_down = self.groups(self.queries, rows)
        blocks = self.tiles_down * batches
        with b.launch_unless_empty(blocks, 1, Memory.of(p, self.variant).bytes) as launch:
            tile, self.batch = unravel(launch.block, batches)
            # With causality, the last rows have the most keys, so their tiles start first.
            if p.causal:
                tile = self.tiles_down - 1 - tile
            self.row = tile * rows
            self.rows = signed_minimum(rows, self.queries - self.row)
            self._compute_tile()

    def _rows(self, value: Value, matrix: Matrix) -> Number:
        known = matrix.sizes[0]
        return self.b.dim(value, 1) if known is None else known

    def _tile_rows(self, batches: Number) -> Number:
        """The rows of a tile: the largest size with enough tiles, evened out so that all tiles have
        about the same size."""
        variant = self.variant
        tile: Number = variant.m // 4
        for part, enough in _ENOUGH_TILES.items():
            rows = variant.m // part
            is_enough = compare("sge", self.groups(self.queries, rows) * batches, enough)
            tile = select(is_enough, rows, tile)
        even = self.groups(self.queries, self.groups(self.queries, tile))
        return self.groups(even, variant.rows) * variant.rows

    # --- The kernel ----------------------------------------------------------------------

    def _compute_tile(self) -> None:
        b, p, variant = self.b, self.problem, self.variant
        tiles = self.tiles = Memory.of(p, variant).buffers(b)
        (q, q_column), (k, k_column), (v, v_column), (o, o_column) = map(self._of_batch, range(4))
        self._copy_q(q, q_column)
        self._clear_o()
        softmax = Softmax(
            self,
            tiles.scores,
            tiles.statistics,
            scale=p.scale,
            causal=p.causal,
            mask_of=None if p.mask is None else self._mask,
            mask_replaces=p.mask is not None and p.mask.replaces,
        )
        softmax.start(self.rows)
        scores = Mainloop(self, variant.rows, Factors(tiles.q, tiles.k), tiles.scores)
        sums = Mainloop(self, variant.rows, Factors(tiles.scores, tiles.v), tiles.o)
        columns, seen = self.head_dim, self.keys
        if p.causal:
            seen = signed_minimum(seen, self.row + self.rows)
        with b.loop(0, seen, variant.keys) as loop:
            key, count = loop.index, signed_minimum(seen - loop.index, variant.keys)
            pack_transposed(self, k, Part(k_column, key, columns, count), tiles.k)
            scores.multiply(self.rows, count, columns, is_first=True)
            softmax.update(Tile(self.row, self.rows, key, count), tiles.o, columns)
            pack_columns(self, v, Part(key, v_column, count, columns), tiles.v)
            sums.multiply(self.rows, columns, count, is_first=False)
        self._store_o(o, o_column, softmax)

    def _of_batch(self, number: int) -> tuple[Buffer, Number]:
        """The matrix of an operand in the tile's batch, and the first column of the tile's head."""
        value, heads = self.arguments[number], self.problem.heads[number]
        if not heads:
            return Buffer(value, [self.batch]), 0
        batch, head = unravel(self.batch, heads)
        return Buffer(value, [batch]), head * self.head_dim

    def _mask(self, row: Number) -> Buffer:
        """The mask of a query of the tile."""
        assert self.problem.mask is not None
        at = outer_index(self.b, self.problem.mask, self.batch, self.row + row)
        return Buffer(self.arguments[4], at)

    def _copy_q(self, q: Buffer, column: Number) -> None:
        """Copies the tile's rows of Q, converted to f32."""
        b, to, columns = self.b, self.tiles.q, self.head_dim
        with b.loop(0, self.rows) as row:
            for j, width in self.each_vector(0, columns, self.width):
                value = self.load(q, [self.row + row.index, column + j], width)
                self.store(value, to, [row.index, j])

    def _clear_o(self) -> None:
        b, o = self.b, self.tiles.o
        with b.loop(0, self.rows) as row, b.loop(0, o.type.shape[1], self.width) as loop:
            self.store(b.zero(self.vector_type), o, [row.index, loop.index])

    def _store_o(self, o: Buffer, column: Number, softmax: Softmax) -> None:
        """Divides the rows by their sums, and stores them. Without keys, O is 0, and not 0 / 0."""
        b, p = self.b, self.problem
        element = p.o.element
        with b.loop(0, self.rows) as row:
            inverse = softmax.inverse_row_sum(row.index, empty_is_zero=p.masked_rows_are_zero)
            if not isinstance(self.keys, int):
                has_keys = compare("ne", self.keys, 0)
                inverse = b.select(has_keys, inverse, b.zero(self.type))
            for j, width in self.each_vector(0, self.head_dim, self.width):
                value = self.load(self.tiles.o, [row.index, j], width)
                made = b.multiply(value, self.broadcast(inverse, width))
                made = b.convert(made, self.of(element, width))
                self.store(made, o, [self.row + row.index, column + j])
