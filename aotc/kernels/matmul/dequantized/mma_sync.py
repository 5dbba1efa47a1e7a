"""The kernel of a product of packed weights and few columns on tensor cores: mma.sync with W as A.

A warp has tiles of 16 rows of W, and a part of K. A lane reads 16 bytes of two rows of each tile,
whose weights are its part of A in some instructions, with K in another order: x is taken in the
same one, from shared memory (L1 answers loads in their order: x would wait there for the loads of
W that are in flight). W is computed in registers as the body says, and rounded where that does;
products are exact, and sums in f32. Chunks of W are loaded some steps before they are used; the
first of them, of constant weights, before the kernel waits for the previous one. At the end, the
warps that share K add their sums through shared memory, in a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial, reduce
from math import gcd, prod
from typing import Any

from msgspec import Struct

from aotc.builder import WIDEST_ACCESS, Buffer, Builder
from aotc.chips import H100, WARP
from aotc.kernels.matmul.dequantized.body import shifts, weights
from aotc.kernels.matmul.dequantized.operands import Operands, Result
from aotc.kernels.matmul.dequantized.recognition import CHUNK, Product, factor_of
from aotc.kernels.matmul.scalar import launch, wait_for_previous
from aotc.kernels.tensor_core import Mma, add_accumulators, fragment
from aotc.numbers import Number, Scalar, Value, compare, divide_up, minimum, unravel

_LANES = 4  # that share a row
_STEP = _LANES * CHUNK  # bytes of a row
_ROWS, _COLUMNS = 16, 8  # of an instruction
_ELEMENTS = ("f16", "bf16")
_ENOUGH_WARPS = 24 * H100.multiprocessors
# That run at once, with 64 registers for a thread.
_MOST_WARPS = 32 * H100.multiprocessors
_MANY_STEPS = 8
_WARPS = 8
# Bytes of x that are copied to shared memory. More is read from global memory.
_MOST_SHARED_X = 64 * 1024
# Accumulators of a tile that take turns: instructions do not wait for each other.
_CHAINS = 2


class Variant(Struct, frozen=True):
    """`tiles`: of a warp. `along`: warps of a block that share K. `depth`: steps between the loads
    and their use. `loads_first`: a step's loads are begun before the step that is used, into
    registers of their own; else after it, into those that it has left."""

    tiles: int
    along: int
    depth: int
    warps: int = _WARPS
    loads_first: bool = False
    overlaps_previous: bool = False

    @property
    def rows_of_block(self) -> int:
        return self.warps // self.along * self.tiles * _ROWS


def can_take(product: Product) -> bool:
    """Whether W is computed in the type of x, which tensor cores multiply."""
    x = product.inputs[product.vector].type.element_type
    return (
        str(x) in _ELEMENTS
        and factor_of(product, narrow=True).type == x
        and product.row_bytes % _STEP == 0
    )


def choose_variant(product: Product, *, overlaps_previous: bool) -> Variant:
    """Of those that were measured on an H200, the best: with all warps of a block along K, and few
    registers, but for few warps with many steps. There are more warps for several vectors, and
    where all blocks have a place at once and their warps a few steps."""
    steps, tiles = product.row_bytes // _STEP, divide_up(product.sizes[product.row], _ROWS)
    own = steps // gcd(steps, _WARPS)
    are_few = tiles * gcd(steps, _WARPS) < _ENOUGH_WARPS
    have_place = tiles * 2 * _WARPS <= _MOST_WARPS
    has_more = product.columns > 1 or (are_few and own <= _MANY_STEPS and have_place)
    warps = 2 * _WARPS if has_more else _WARPS
    along = gcd(steps, warps)
    own = steps // along
    is_long = own > _MANY_STEPS and are_few
    depth = min(3 if is_long else 2, own)
    return Variant(1, along, depth, warps, loads_first=is_long, overlaps_previous=overlaps_previous)


class _Chunk(Struct, frozen=True):
    """What a lane has loaded of a row: the words, and what `load_others` gives."""

    words: list[Value]
    others: list[dict[int, Value]]

    def values(self) -> list[Value]:
        return [*self.words, *_distinct(self.others)]

    def with_values(self, values: Sequence[Value]) -> _Chunk:
        """The same of other values, in the order of `values`."""
        count = len(self.words)
        new = dict(zip(_distinct(self.others), values[count:], strict=True))
        others = [{number: new[one] for number, one in each.items()} for each in self.others]
        return _Chunk(list(values[:count]), others)


def _distinct(others: Sequence[dict[int, Value]]) -> list[Value]:
    return list(dict.fromkeys(one for each in others for one in each.values()))


class TensorCoreKernel:
    """Builds the kernel at the insertion point."""

    def __init__(self, b: Builder, product: Product, variant: Variant, result: Result) -> None:
        self.b, self.product, self.variant = b, product, variant
        self.operands = Operands(b, product, result)
        element = self.operands.x.element
        self.mma = Mma(_ROWS, _COLUMNS, 16, element, "f32", 2)
        self.loads_early = variant.overlaps_previous and product.has_constant_weights
        self.rows, self.columns = self.operands.rows, product.columns
        self.column_tiles = divide_up(self.columns, _COLUMNS)
        assert isinstance(self.column_tiles, int)
        # x in shared memory, in vectors as lanes read them: of columns, steps, vectors, lanes.
        self.vectors = product.in_a_byte * CHUNK * self.operands.x.element_bytes // WIDEST_ACCESS
        steps, elements = product.row_bytes // _STEP, WIDEST_ACCESS // self.operands.x.element_bytes
        self.x_shape = (self.columns, steps, self.vectors, _LANES, elements)
        x_bytes = prod(self.x_shape) * self.operands.x.element_bytes
        self.shares_x = x_bytes <= _MOST_SHARED_X
        self.x_bytes = x_bytes if self.shares_x else 0
        # Columns of the sums in shared memory.
        self.width = 1 if self.columns == 1 else self.column_tiles * _COLUMNS

    def build(self) -> None:
        b, variant = self.b, self.variant
        shape = (variant.along, self.width, variant.rows_of_block)
        blocks = divide_up(self.rows, variant.rows_of_block)
        early, bytes_ = variant.overlaps_previous, self.x_bytes + 4 * prod(shape)
        later, threads = self.loads_early, variant.warps * WARP
        with launch(
            b, blocks, threads, bytes_, overlaps_previous=early, waits_later=later
        ) as block:
            self.thread, self.first = block.thread, block.index * variant.rows_of_block
            sums = b.shared_buffer(block.shared, self.x_bytes, shape, "f32")
            if self.shares_x:
                self.x = b.shared_buffer(block.shared, 0, self.x_shape, self.operands.x.element)
            self._compute(sums)
            b.barrier()
            self._store(sums)

    def _compute(self, sums: Buffer) -> None:
        b, variant = self.b, self.variant
        warp, lane = unravel(self.thread, WARP)
        group, part = unravel(warp, variant.along)
        self.row_of_lane, self.lane_of_row = unravel(lane, _LANES)
        own = group * (variant.tiles * _ROWS) + self.row_of_lane
        local = [own + i * _COLUMNS for i in range(2 * variant.tiles)]
        rows = [self.first + one for one in local]
        if self.rows % variant.rows_of_block:
            rows = [minimum(row, self.rows - 1) for row in rows]
        steps = self.product.row_bytes // _STEP // variant.along
        self.first_step = part * steps
        self.begin = self.first_step * _STEP + self.lane_of_row * CHUNK
        accumulators = self._over_k(rows, steps)
        tiles = [
            reduce(partial(add_accumulators, b), accumulators[first : first + _CHAINS])
            for first in range(0, len(accumulators), _CHAINS)
        ]
        for number, tile in enumerate(tiles):
            of_rows, of_columns = divmod(number, self.column_tiles)
            self._share(tile, local[2 * of_rows :], of_columns * _COLUMNS, part, sums)

    # --- Accumulators ------------------------------------------------------------------------

    def _over_k(self, rows: Sequence[Number], steps: int) -> list[Value]:
        """The accumulators of tiles, of columns, of chains."""
        b, depth = self.b, self.variant.depth
        count = self.variant.tiles * self.column_tiles * _CHAINS
        zero = b.zero(self.mma.accumulator_type)
        # What is no multiple of the depth comes first.
        rest = steps % depth
        # The loads of x first, which are waited for first; but for those in front of the wait.
        chunks = [] if self.loads_early or not self.shares_x else self._chunks_of_x()
        with b.reads_constants() if self.loads_early else nullcontext():
            first = [self._load(rows, step) for step in range(rest + depth)]
        if self.loads_early:
            wait_for_previous(b)
        if self.shares_x:
            self._share_x(chunks or self._chunks_of_x())
        # Also where x is not copied: LLVM would move loads from in front of the loop to their uses.
        b.barrier()
        sums = [zero] * count
        for step in range(rest):
            sums = self._multiply(step, first[step], sums)
        held = first[rest:]
        shape = held
        if steps > rest + depth:
            carried = [*sums, *_values(held)]
            with b.loop(rest, steps - depth, depth, carried) as loop:
                sums, held = loop.carried[:count], _with_values(shape, loop.carried[count:])
                next_ = []
                for number, chunk in enumerate(held):
                    step = loop.index + number
                    if self.variant.loads_first:
                        next_.append(self._load(rows, step + depth))
                    sums = self._multiply(step, chunk, sums)
                    if not self.variant.loads_first:
                        next_.append(self._load(rows, step + depth))
                loop.next([*sums, *_values(next_)])
            sums, held = loop.results[:count], _with_values(shape, loop.results[count:])
        for number, chunk in enumerate(held):
            sums = self._multiply(steps - depth + number, chunk, sums)
        return sums

    def _place(self, step: Number) -> Number:
        return self.begin + step * _STEP

    def _load(self, rows: Sequence[Number], step: Number) -> list[_Chunk]:
        """A chunk of each row."""
        place, operands = self._place(step), self.operands
        words = [operands.load_words(row, place) for row in rows]
        # A step is in one group, mostly: its place has nothing of the lane's then.
        first = (self.first_step + step) * _STEP
        of_group = place if self.product.sizes[self.product.outer_digits[-1]] % _STEP else first
        others = [operands.load_others(row, of_group) for row in rows]
        return [_Chunk(*one) for one in zip(words, others, strict=True)]

    def _multiply(
        self, step: Number, chunks: Sequence[_Chunk], sums: Sequence[Value]
    ) -> list[Value]:
        """The accumulators with a step. Whether zeros are subtracted exactly is one for a warp, all
        of which multiplies."""
        b, inner = self.b, self.operands.inner
        elements = [(one.others[i], inner[i]) for one in chunks for i in range(len(inner))]
        found = shifts(b, self.product, elements)
        are_exact = found.are_exact
        if not isinstance(are_exact, bool):
            every_lane = b.constant(-1, "i32")
            kind = "#nvvm<vote_sync_kind all>"
            are_exact = Scalar(b.op("nvvm.vote.sync", [every_lane, are_exact], "i1", kind=kind))
        types = [self.mma.accumulator_type] * len(sums)
        add = partial(self._add, step, chunks, sums)
        return b.choose(are_exact, types, partial(add, found.sums), partial(add, {}))

    def _add(
        self,
        step: Number,
        chunks: Sequence[_Chunk],
        sums: Sequence[Value],
        zeros: Mapping[Any, Value],
    ) -> list[Value]:
        b, operands, added = self.b, self.operands, list(sums)
        for number in range(len(operands.inner)):
            right = [self._fragments_of_x(tile, step, number) for tile in range(self.column_tiles)]
            for tile in range(self.variant.tiles):
                rows = [
                    self._weights(one, number, zeros) for one in chunks[2 * tile : 2 * tile + 2]
                ]
                for i, left in enumerate(_fragments(b, rows)):
                    for column_tile, fragments in enumerate(right):
                        at = (tile * self.column_tiles + column_tile) * _CHAINS + i % _CHAINS
                        added[at] = self.mma.multiply(b, left, fragments[i], added[at])
        return added

    def _fragments_of_x(self, tile: int, step: Number, number: int) -> list[Value]:
        column = self.row_of_lane + tile * _COLUMNS
        if self.columns % _COLUMNS:
            column = minimum(column, self.columns - 1)
        return _fragments(self.b, [self._load_x(column, step, number)])

    def _weights(self, chunk: _Chunk, number: int, zeros: Mapping[Any, Value]) -> Value:
        """One of the weights of each byte of a chunk."""
        others, inner = chunk.others[number], self.operands.inner[number]
        product = self.product
        return weights(self.b, product, chunk.words, others, inner, narrow=True, sums=zeros)

    # --- x -------------------------------------------------------------------------------------

    def _chunks_of_x(self) -> list[list[Value]]:
        """The elements of each chunk, which is what a lane reads in a step, that a thread copies to
        shared memory; the last chunk once more behind it."""
        columns, steps, _, lanes, _ = self.x_shape
        count, threads = columns * steps * lanes, self.variant.warps * WARP
        found = []
        for first in range(0, count, threads):
            number = minimum(self.thread + first, count - 1)
            column, step, lane = unravel(number, steps, lanes)
            chunk = self.operands.load_x(column, step * _STEP + lane * CHUNK)
            found.append([one for vector in chunk for one in self.b.elements(vector)])
        return found

    def _share_x(self, chunks: Sequence[list[Value]]) -> None:
        b, threads = self.b, self.variant.warps * WARP
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
        """A vector for one of a byte's weights, in the order of bytes in `weights`."""
        if not self.shares_x:
            return self.operands.load_x(column, self._place(step))[number]
        b, width = self.b, self.x_shape[-1]
        step, count = self.first_step + step, CHUNK // width
        elements = [
            one
            for i in range(number * count, (number + 1) * count)
            for one in b.load_elements(self.x, [column, step, i, self.lane_of_row, 0], width)
        ]
        return b.from_elements(elements, f"vector<{CHUNK}x{self.operands.x.element}>")

    # --- Sums ----------------------------------------------------------------------------------

    def _share(
        self, tile: Value, rows: Sequence[Number], first: int, part: Number, sums: Buffer
    ) -> None:
        """Writes a tile's sums, of a lane's two rows and two columns."""
        b = self.b
        if self.width == 1:
            with b.where(compare("eq", self.lane_of_row, 0)):
                for i in range(2):
                    b.store(b.extract(tile, [i, 0]), sums, [part, 0, rows[i]])
            return
        for i in range(2):
            for j in range(2):
                column = self.lane_of_row * 2 + (first + j)
                b.store(b.extract(tile, [i, j]), sums, [part, column, rows[i]])

    def _store(self, sums: Buffer) -> None:
        b, variant = self.b, self.variant
        threads, count = variant.warps * WARP, variant.rows_of_block * self.columns
        for first in range(0, count, threads):
            place = self.thread + first
            column, local = unravel(place, variant.rows_of_block)
            row = self.first + local
            is_there = first + threads <= count or compare("ult", place, count)
            with b.where(is_there):
                is_row = self.rows % variant.rows_of_block == 0 or compare("ult", row, self.rows)
                with b.where(is_row):
                    parts = [b.load(sums, [i, column, local]) for i in range(variant.along)]
                    self.operands.store(column, row, reduce(b.add, parts))


def _values(steps: Sequence[Sequence[_Chunk]]) -> list[Value]:
    return [value for chunks in steps for chunk in chunks for value in chunk.values()]


def _with_values(shape: Sequence[Sequence[_Chunk]], values: Sequence[Value]) -> list[list[_Chunk]]:
    """Chunks like those of `shape`, of other values."""
    found, rest = [], list(values)
    for chunks in shape:
        own = []
        for chunk in chunks:
            count = len(chunk.values())
            own.append(chunk.with_values(rest[:count]))
            rest = rest[count:]
        found.append(own)
    return found


def _fragments(b: Builder, rows: Sequence[Value]) -> list[Value]:
    """The fragments of vectors of 16 elements: of a row each for x, of two rows for W. A fragment
    has two pairs of each row; the pairs of different rows are neighbours."""
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
