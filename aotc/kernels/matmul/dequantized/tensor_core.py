"""The base of the kernels with packed weights on tensor cores: operands, MMAs and reductions.

W is the A operand of mma.sync. A warp has tiles of 16 rows of W, and a part of K. A lane has 16
bytes of two rows of each tile, whose weights are its fragments of A for some instructions, with K
permuted. x is read in the same permuted order, from shared memory. (L1 answers loads in order, so
that loads of x from global memory would wait for the loads of W in flight.) W is computed in
registers as in the body, with the same rounding. Products are exact, and accumulators are f32. The
warps that share K add their accumulators through shared memory, in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from math import prod
from typing import Any

from msgspec import Struct

from aotc.builder import WIDEST_ACCESS, Buffer, Builder
from aotc.builder.numbers import Number, Scalar, Value, compare, divide_up, minimum, unravel
from aotc.chips import WARP
from aotc.kernels.matmul.dequantized.body import shifts, weights
from aotc.kernels.matmul.dequantized.operands import Operands, Result
from aotc.kernels.matmul.dequantized.recognition import CHUNK, Product
from aotc.kernels.tensor_core import Mma, add_accumulators, fragment

LANES = 4  # the lanes that share a row
STEP = LANES * CHUNK  # the bytes of a row in a step
ROWS, COLUMNS = 16, 8  # the rows and columns of one mma.sync
# The largest x, in bytes, that is copied to shared memory. A larger one is read from global memory.
MOST_SHARED_X = 64 * 1024
# The number of accumulators of a tile, used in turn, so that instructions do not wait for each
# other.
_CHAINS = 2


# Computes accumulators, given the sums that may be subtracted at once (see `Shifts`).
Add = Callable[[Mapping[Any, Value]], list[Value]]


class Warps(Struct, frozen=True):
    """The warps of a block: `count` of them, of which `along` share K, with `tiles` tiles each."""

    count: int
    along: int
    tiles: int = 1

    @property
    def rows(self) -> int:
        return self.count // self.along * self.tiles * ROWS

    @property
    def threads(self) -> int:
        return self.count * WARP


class Chunk(Struct, frozen=True):
    """A lane's loaded data of a row: the packed words, and the elements of `load_others`."""

    words: list[Value]
    others: list[dict[int, Value]]

    def values(self) -> list[Value]:
        return [*self.words, *_distinct(self.others)]

    def with_values(self, values: Sequence[Value]) -> Chunk:
        """The chunk with other values, in the order of `values`."""
        count = len(self.words)
        new = dict(zip(_distinct(self.others), values[count:], strict=True))
        others = [{number: new[one] for number, one in each.items()} for each in self.others]
        return Chunk(list(values[:count]), others)


def _distinct(others: Sequence[dict[int, Value]]) -> list[Value]:
    return list(dict.fromkeys(one for each in others for one in each.values()))


class TensorCoreProduct:
    """The base of kernel builders. `few_instructions`: prefer fewer instructions to fewer
    registers."""

    few_instructions = False

    def __init__(self, b: Builder, product: Product, warps: Warps, result: Result) -> None:
        self.b, self.product, self.warps = b, product, warps
        self.operands = Operands(b, product, result)
        element = self.operands.x.element
        self.mma = Mma(ROWS, COLUMNS, 16, element, "f32", 2)
        self.rows, self.columns = self.operands.rows, product.columns
        self.column_tiles = divide_up(self.columns, COLUMNS)
        assert isinstance(self.column_tiles, int)
        # x in shared memory, in the vectors that lanes read: (column, step, vector, lane, element).
        self.vectors = product.in_a_byte * CHUNK * self.operands.x.element_bytes // WIDEST_ACCESS
        steps, elements = product.row_bytes // STEP, WIDEST_ACCESS // self.operands.x.element_bytes
        self.x_shape = (self.columns, steps, self.vectors, LANES, elements)
        x_bytes = prod(self.x_shape) * self.operands.x.element_bytes
        self.shares_x = x_bytes <= MOST_SHARED_X
        self.x_bytes = x_bytes if self.shares_x else 0
        # The columns of the accumulators in shared memory.
        self.width = 1 if self.columns == 1 else self.column_tiles * COLUMNS
        # The blocks' strips of rows of W, and the steps of a warp.
        self.strips = divide_up(self.rows, warps.rows)
        self.steps = steps // warps.along

    def begin(self, thread: Number, shared: Value | None) -> None:
        """Sets the thread's coordinates, at the beginning of the kernel."""
        b, warps = self.b, self.warps
        self.thread = thread
        self.warp, self.lane = unravel(thread, WARP)
        group, self.part = unravel(self.warp, warps.along)
        self.row_of_lane, self.lane_of_row = unravel(self.lane, LANES)
        own = group * (warps.tiles * ROWS) + self.row_of_lane
        # The lane's rows in a strip.
        self.local = [own + i * COLUMNS for i in range(2 * warps.tiles)]
        self.first_step = self.part * self.steps
        self.first_byte = self.first_step * STEP + self.lane_of_row * CHUNK
        if self.shares_x:
            self.x = b.shared_buffer(shared, 0, self.x_shape, self.operands.x.element)

    def row(self, strip: Number, local: Number) -> Number:
        """The row of W of a strip's row `local`, clamped to the last row."""
        row = strip * self.warps.rows + local
        return minimum(row, self.rows - 1) if self.rows % self.warps.rows else row

    def place(self, step: Number) -> Number:
        """The lane's first byte of a row in a step."""
        return self.first_byte + step * STEP

    def place_of_others(self, step: Number) -> Number:
        """A byte of a row in the same group as the lane's bytes. If groups consist of whole steps,
        it is the same for all lanes."""
        in_groups = self.product.sizes[self.product.outer_digits[-1]] % STEP == 0
        return (self.first_step + step) * STEP if in_groups else self.place(step)

    # --- Accumulators ------------------------------------------------------------------------

    def zeros(self) -> list[Value]:
        """The initial accumulators, for each tile, group of columns and chain."""
        count = self.warps.tiles * self.column_tiles * _CHAINS
        return [self.b.zero(self.mma.accumulator_type)] * count

    def choose_exact(
        self, others: Sequence[Sequence[dict[int, Value]]], sums: Sequence[Value], add: Add
    ) -> list[Value]:
        """The accumulators that `add` returns. It is called with the sums that are subtracted from
        weights at once, if these are exact in all lanes of the warp, which multiplies as a whole.
        `others`: the elements of `load_others`, for some rows."""
        b, inner = self.b, self.operands.inner
        elements = [pair for one in others for pair in zip(one, inner, strict=True)]
        found = shifts(b, self.product, elements, few_instructions=self.few_instructions)
        are_exact = found.are_exact
        if not isinstance(are_exact, bool):
            every_lane = b.constant(-1, "i32")
            kind = "#nvvm<vote_sync_kind all>"
            are_exact = Scalar(b.op("nvvm.vote.sync", [every_lane, are_exact], "i1", kind=kind))
        types = [self.mma.accumulator_type] * len(sums)
        return b.choose(are_exact, types, partial(add, found.sums), partial(add, {}))

    def add_step(
        self,
        step: Number,
        chunks: Sequence[Chunk],
        sums: Sequence[Value],
        zeros: Mapping[Any, Value],
    ) -> list[Value]:
        b, operands, added = self.b, self.operands, list(sums)
        for number in range(len(operands.inner)):
            right = [self._fragments_of_x(tile, step, number) for tile in range(self.column_tiles)]
            for tile in range(self.warps.tiles):
                rows = [
                    self._weights(one, number, zeros) for one in chunks[2 * tile : 2 * tile + 2]
                ]
                for i, left in enumerate(_fragments(b, rows)):
                    for column_tile, fragments in enumerate(right):
                        at = (tile * self.column_tiles + column_tile) * _CHAINS + i % _CHAINS
                        added[at] = self.mma.multiply(b, left, fragments[i], added[at])
        return added

    def _fragments_of_x(self, tile: int, step: Number, number: int) -> list[Value]:
        column = self.row_of_lane + tile * COLUMNS
        if self.columns % COLUMNS:
            column = minimum(column, self.columns - 1)
        return _fragments(self.b, [self._load_x(column, step, number)])

    def _weights(self, chunk: Chunk, number: int, zeros: Mapping[Any, Value]) -> Value:
        """One weight of each byte of a chunk."""
        others, inner = chunk.others[number], self.operands.inner[number]
        product = self.product
        return weights(self.b, product, chunk.words, others, inner, narrow=True, sums=zeros)

    # --- x -------------------------------------------------------------------------------------

    def load_chunks_of_x(self) -> list[list[Value]]:
        """Loads the chunks of x that a thread copies to shared memory. A chunk has the elements
        that a lane reads in a step. Past the last chunk, it is loaded again."""
        columns, steps, _, lanes, _ = self.x_shape
        count, threads = columns * steps * lanes, self.warps.threads
        found = []
        for first in range(0, count, threads):
            number = minimum(self.thread + first, count - 1)
            column, step, lane = unravel(number, steps, lanes)
            chunk = self.operands.load_x(column, step * STEP + lane * CHUNK)
            found.append([one for vector in chunk for one in self.b.elements(vector)])
        return found

    def share_x(self, chunks: Sequence[list[Value]]) -> None:
        b, threads = self.b, self.warps.threads
        columns, steps, vectors, lanes, width = self.x_shape
        count = columns * steps * lanes
        for i, elements in enumerate(chunks):
            number = self.thread + i * threads
            is_there = (i + 1) * threads <= count or compare("ult", number, count)
            with b.where(is_there):
                column, step, lane = unravel(number, steps, lanes)
                for vector in range(vectors):
                    own = elements[vector * width : (vector + 1) * width]
                    b.store_elements(own, self.x, [column, step, vector, lane, 0])

    def _load_x(self, column: Number, step: Number, number: int) -> Value:
        """A vector of x for one of a byte's weights, in the byte order of `weights`."""
        if not self.shares_x:
            return self.operands.load_x(column, self.place(step))[number]
        b, width = self.b, self.x_shape[-1]
        step, count = self.first_step + step, CHUNK // width
        elements = [
            one
            for i in range(number * count, (number + 1) * count)
            for one in b.load_elements(self.x, [column, step, i, self.lane_of_row, 0], width)
        ]
        return b.from_elements(elements, f"vector<{CHUNK}x{self.operands.x.element}>")

    # --- Sums ----------------------------------------------------------------------------------

    def share(self, accumulators: Sequence[Value], sums: Buffer) -> None:
        """Writes the accumulators to shared memory, as parts of K x columns x rows."""
        tiles = [
            reduce(partial(add_accumulators, self.b), accumulators[first : first + _CHAINS])
            for first in range(0, len(accumulators), _CHAINS)
        ]
        for number, tile in enumerate(tiles):
            of_rows, of_columns = divmod(number, self.column_tiles)
            self._share(tile, self.local[2 * of_rows :], of_columns * COLUMNS, sums)

    def _share(self, tile: Value, rows: Sequence[Number], first: int, sums: Buffer) -> None:
        """Writes a tile's accumulators of a lane, in two rows and two columns."""
        b = self.b
        if self.width == 1:
            with b.where(compare("eq", self.lane_of_row, 0)):
                for i in range(2):
                    b.store(b.extract(tile, [i, 0]), sums, [self.part, 0, rows[i]])
            return
        for i in range(2):
            for j in range(2):
                column = self.lane_of_row * 2 + (first + j)
                b.store(b.extract(tile, [i, j]), sums, [self.part, column, rows[i]])

    def store(self, strip: Number, sums: Buffer, thread: Number) -> None:
        """Stores the results of a strip. `thread`: the thread's index among those that store."""
        b, threads, rows = self.b, self.warps.threads, self.warps.rows
        count = rows * self.columns
        for first in range(0, count, threads):
            place = thread + first
            column, local = unravel(place, rows)
            row = strip * rows + local
            is_there = first + threads <= count or compare("ult", place, count)
            with b.where(is_there):
                is_row = self.rows % rows == 0 or compare("ult", row, self.rows)
                with b.where(is_row):
                    parts = [b.load(sums, [i, column, local]) for i in range(self.warps.along)]
                    self.operands.store(column, row, reduce(b.add, parts))


def _fragments(b: Builder, rows: Sequence[Value]) -> list[Value]:
    """The fragments of vectors of 16 elements: of one row for x, of two rows for W. A fragment has
    two pairs of each row; corresponding pairs of different rows are adjacent."""
    found = []
    for first in range(0, CHUNK, 4):
        pairs = [_pair(b, row, first + i) for i in (0, 2) for row in rows]
        found.append(fragment(b, pairs))
    return found


def _pair(b: Builder, vector: Value, first: int) -> Value:
    element = vector.type.element_type
    return b.op(
        "vector.extract_strided_slice",
        [vector],
        f"vector<2x{element}>",
        offsets=f"[{first}]",
        sizes="[2]",
        strides="[1]",
    )
