"""The persistent kernel of a matrix-vector product with packed weights on tensor cores.

The grid has as many blocks as are concurrent, which iterate over strips of rows. A lane copies its
chunks of W to shared memory by cp.async, some groups of steps ahead, across strips. Copies thus
continue while a strip's accumulators are reduced, and take no registers. If the weights are
constant, the first copies start before the kernel waits for the previous one. A lane only reads the
chunks that it has copied itself, so it waits for its own copies only. The elements of other inputs
(scales and zero points) are copied by all threads, one strip ahead; the barrier of the reduction of
a strip is between their copies and their reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from math import prod
from typing import Any

from msgspec import Struct

from aotc.builder import WIDEST_ACCESS, Buffer, Builder
from aotc.builder.numbers import (
    Condition,
    Number,
    Value,
    compare,
    divide_up,
    is_equal,
    minimum,
    select,
    unravel,
)
from aotc.chips import H100, WARP
from aotc.kernels.matmul.dequantized.body import WORD
from aotc.kernels.matmul.dequantized.operands import Result, are_of_rows
from aotc.kernels.matmul.dequantized.recognition import CHUNK, Product
from aotc.kernels.matmul.dequantized.tensor_core import (
    MOST_SHARED_X,
    ROWS,
    STEP,
    Chunk,
    TensorCoreProduct,
    Warps,
)
from aotc.kernels.matmul.problem import ELEMENT_BYTES
from aotc.kernels.matmul.scalar import launch, wait_for_previous
from aotc.kernels.tensor_core import commit_group, copy_async, wait_group

_WARPS = 8
_MOST_STEPS = 4
_GROUPS = 2
_BLOCKS = 2  # concurrent blocks of a multiprocessor
_LEAST_STRIPS = 4  # the fewest strips of a block
_SHARED_BYTES = 96 * 1024  # the most shared memory of a block, for _BLOCKS to be concurrent


class Variant(Struct, frozen=True):
    """Parameters of a kernel. `warps`: the warps of a block, which share K. `steps`: the steps of a
    group, a divisor of those of a warp. `groups`: the groups in shared memory, including those in
    flight. `blocks`: the blocks of the grid."""

    warps: int
    steps: int
    groups: int
    blocks: int
    overlaps_previous: bool = False


def choose_variant(product: Product, *, overlaps_previous: bool) -> Variant | None:
    """The variant for a product. None if the kernel of `mma_sync` was measured to be faster, or
    nothing was measured: for 8-bit weights, which take fewer instructions, and for few strips per
    block."""
    blocks = _BLOCKS * H100.multiprocessors
    steps, rest = divmod(product.row_bytes // STEP, _WARPS)
    strips = product.sizes[product.row] // ROWS
    if product.in_a_byte == 1 or product.columns > 1 or rest or strips < _LEAST_STRIPS * blocks:
        return None
    of_group = max(i for i in range(1, _MOST_STEPS + 1) if steps % i == 0)
    variant = Variant(_WARPS, of_group, _GROUPS, blocks, overlaps_previous)
    layout = _Layout(product, variant)
    has_place = layout.ring_at <= MOST_SHARED_X and layout.bytes <= _SHARED_BYTES
    return variant if of_group > 1 and has_place else None


class _Rows(Struct, frozen=True):
    """An input with contiguous elements for each row of W (see `are_of_rows`). `number`: its index.
    `count`: the elements of a row. `pitch`: the pitch of rows in shared memory, padded against bank
    conflicts. `at`: its offset in shared memory."""

    number: int
    count: int
    pitch: int
    at: int


class _Layout:
    """The layout of a block's shared memory behind x."""

    def __init__(self, product: Product, variant: Variant) -> None:
        k, warps = product.row_bytes * product.in_a_byte, variant.warps
        x = product.inputs[product.vector].type.element_type
        steps = product.row_bytes // STEP // warps
        self.groups = steps // variant.steps  # the groups of a strip
        self.ring = (warps, variant.groups, variant.steps, 2, WARP, CHUNK)
        self.ring_at = k * ELEMENT_BYTES[str(x)]
        # Two buffers for the accumulators of strips: one is read while the other one is written.
        self.sums, self.sums_at = (2, warps, 1, ROWS), self.ring_at + prod(self.ring)
        # Slots for the strips in flight, for the one that is computed, and for the next one.
        self.slots = (self.groups - 1 + variant.groups) // self.groups + 2
        self.bytes = self.sums_at + 4 * prod(self.sums)
        self.rows = list(self._rows(product))

    def _rows(self, product: Product) -> Iterator[_Rows]:
        for number, value in enumerate(product.inputs):
            if are_of_rows(product, number):
                count, size = (
                    prod(value.type.shape[1:]),
                    ELEMENT_BYTES[str(value.type.element_type)],
                )
                padding = 0 if count * size % WIDEST_ACCESS else WIDEST_ACCESS // size
                yield _Rows(number, count, count + padding, self.bytes)
                self.bytes += self.slots * ROWS * (count + padding) * size


class PersistentKernel(TensorCoreProduct):
    """Builds the kernel at the insertion point."""

    few_instructions = True

    def __init__(self, b: Builder, product: Product, variant: Variant, result: Result) -> None:
        super().__init__(b, product, Warps(variant.warps, variant.warps), result)
        self.variant, self.layout = variant, _Layout(product, variant)
        self.loads_early = variant.overlaps_previous and product.has_constant_weights
        self.sources = [self.operands.flat(one.number) for one in self.layout.rows]
        assert self.shares_x

    def build(self) -> None:
        b, variant, layout = self.b, self.variant, self.layout
        early, later, threads = variant.overlaps_previous, self.loads_early, self.warps.threads
        with launch(
            b,
            variant.blocks,
            threads,
            layout.bytes,
            overlaps_previous=early,
            waits_later=later,
        ) as block:
            shared, self.block = block.shared, block.index
            packed = self.operands.packed.element
            self.ring = b.shared_buffer(shared, layout.ring_at, layout.ring, packed)
            self.sums = b.shared_buffer(shared, layout.sums_at, layout.sums, "f32")
            self.strips_of = {
                one.number: b.shared_buffer(
                    shared, one.at, (layout.slots, ROWS, one.pitch), source.element
                )
                for one, source in zip(layout.rows, self.sources, strict=True)
            }
            self.begin(block.thread, shared)
            self._begin_copies()
            first = b.values([0, 0, 0])
            with b.loop(self.block, self.strips, variant.blocks, first) as loop:
                place, slot, turn = loop.carried
                place = self._strip(loop.index, place, slot, turn)
                slot, turn = _next(slot, layout.slots), _next(turn, variant.warps)
                loop.next(b.values([place, slot, turn]))

    # --- Copies ------------------------------------------------------------------------------

    def _begin_copies(self) -> None:
        """Starts the first copies. On return, x and the first strip's elements of other inputs are
        in shared memory."""
        b, tokens, groups = self.b, [], self.layout.groups
        # The loads of x are issued first, as they are waited for first, unless the copies of W
        # start before the wait for the previous kernel.
        chunks = [] if self.loads_early else self.load_chunks_of_x()
        with b.reads_constants() if self.loads_early else nullcontext():
            self._copy_rows(self.block, 0)
            for number in range(self.variant.groups):
                later, group = divmod(number, groups)
                strip = self.block + later * self.variant.blocks
                with b.where(self._is_there(strip)):
                    for step in range(self.variant.steps):
                        tokens += self._copy(strip, group, step, number)
                if group == 0:
                    self._copy_rows(strip + self.variant.blocks, later + 1)
                # Each group operation gets a token of the first group, as one without operands has
                # no textual form.
                self.token = commit_group(b, tokens[:1])
        if self.loads_early:
            wait_for_previous(b)
        self.share_x(chunks or self.load_chunks_of_x())
        self._wait()
        b.barrier()

    def _wait(self) -> None:
        """Waits for the copies of the next group."""
        wait_group(self.b, self.token, self.variant.groups - 1)

    def _is_there(self, strip: Number) -> Condition:
        return strip is self.block or compare("ult", strip, self.strips)

    def _copy(self, strip: Number, group: Number, step: int, place: Number) -> list[Value]:
        """Starts to copy a step of a strip's group to slot `place` of the ring."""
        b, tokens = self.b, []
        for number, local in enumerate(self.local):
            at = [self.row(strip, local), self.place(group * self.variant.steps + step)]
            to = [self.warp, place, step, number, self.lane, 0]
            tokens.append(copy_async(b, self.operands.packed, at, self.ring, to, CHUNK))
        return tokens

    def _copy_rows(self, strip: Number, slot: Number) -> None:
        """Starts to copy a strip's elements of other inputs to a slot, if the strip exists."""
        b, threads = self.b, self.warps.threads
        for one, source in zip(self.layout.rows, self.sources, strict=True):
            width = WIDEST_ACCESS // source.element_bytes
            count, total = divide_up(ROWS * one.count, width), self.rows * one.count
            for first in range(0, count, threads):
                number = self.thread + first
                begin = (strip * ROWS) * one.count + number * width
                is_there = compare("ult", number, count) & compare("ult", begin, total)
                row, column = unravel(number * width, one.count)
                if one.pitch == one.count:
                    row, column = 0, number * width
                valid = minimum(total - begin, width) if total % width else None
                to = [slot, row, column]
                with b.where(is_there):
                    copy_async(b, source, [begin], self.strips_of[one.number], to, width, valid)

    # --- Accumulators ------------------------------------------------------------------------

    def _strip(self, strip: Number, place: Number, slot: Number, turn: Number) -> Number:
        """Computes a strip. `place`: the ring's slot of its first group. Returns the slot of the
        next strip's first group."""
        b, variant, groups, sums = self.b, self.variant, self.layout.groups, self.zeros()
        later, first = divmod(variant.groups, groups)
        # The group that is copied next: its strip, its index in the strip, and the slot for other
        # inputs of the strip after that.
        slot_of_next = slot
        for _ in range(later + 1):
            slot_of_next = _next(slot_of_next, self.layout.slots)
        cursor = [strip + later * variant.blocks, first, slot_of_next]
        if groups == 1:
            sums = self._group(0, place, slot, cursor, sums)
            place = _next(place, variant.groups)
        else:
            count, carried = len(sums), b.values([place, *cursor])
            with b.loop(0, groups, 1, [*sums, *carried]) as loop:
                sums, (place, *cursor) = loop.carried[:count], loop.carried[count:]
                sums = self._group(loop.index, place, slot, cursor, sums)
                place, cursor = _next(place, variant.groups), self._next_group(*cursor)
                loop.next([*sums, *b.values([place, *cursor])])
            sums, place = loop.results[:count], loop.results[count]
        own = Buffer(self.sums.value, [turn & 1])
        self.share(sums, own)
        b.barrier()
        # Warps take turns in the reductions of strips.
        threads = self.warps.threads
        self.store(strip, own, _wrapped(self.thread + turn * WARP, threads))
        return place

    def _next_group(self, strip: Number, group: Number, slot: Number) -> list[Number]:
        is_last = compare("eq", group, self.layout.groups - 1)
        return [
            select(is_last, strip + self.variant.blocks, strip),
            select(is_last, 0, group + 1),
            select(is_last, _next(slot, self.layout.slots), slot),
        ]

    def _group(
        self,
        group: Number,
        place: Number,
        slot: Number,
        cursor: Sequence[Number],
        sums: Sequence[Value],
    ) -> list[Value]:
        """The accumulators after a group of steps. The next group is copied to its slot in the
        ring."""
        b, steps, (strip, next_group, slot_of_next) = self.b, self.variant.steps, cursor
        self._wait()
        first = group * steps
        others = [
            [
                self.operands.load_others(
                    local,
                    self.place_of_others(first + step),
                    partial(self._read_other, slot, local),
                )
                for local in self.local
            ]
            for step in range(steps)
        ]
        is_there = self._is_there(strip)

        def add(zeros: Mapping[Any, Value]) -> list[Value]:
            added = list(sums)
            for step in range(steps):
                words = [self._words(place, step, row) for row in range(len(self.local))]
                with b.where(is_there):
                    self._copy(strip, next_group, step, place)
                chunks = [Chunk(*one) for one in zip(words, others[step], strict=True)]
                added = self.add_step(first + step, chunks, added, zeros)
            return added

        # The steps of a row are consecutive, as in shared memory.
        of_rows = [one for row in zip(*others, strict=True) for one in row]
        added = self.choose_exact(of_rows, sums, add)
        with b.where(is_equal(next_group, 0) or compare("eq", next_group, 0)):
            self._copy_rows(strip + self.variant.blocks, slot_of_next)
        commit_group(b, [self.token])
        return added

    def _words(self, place: Number, step: int, row: int) -> list[Value]:
        """Loads a chunk of one of the lane's rows from shared memory."""
        b, at = self.b, [self.warp, place, step, row, self.lane, 0]
        bytes_ = b.load_vector(self.ring, at, CHUNK, CHUNK)
        return b.elements(b.op("vector.bitcast", [bytes_], f"vector<{CHUNK // WORD}xi32>"))

    def _read_other(self, slot: Number, local: Number, number: int, at: Sequence[Number]) -> Value:
        column: Number = 0
        for index, size in zip(at[1:], self.product.inputs[number].type.shape[1:], strict=True):
            column = column * size + index
        return self.b.load(self.strips_of[number], [slot, local, column])


def _next(number: Number, count: int) -> Number:
    """(number + 1) modulo count, for a number below `count`."""
    return _wrapped(number + 1, count)


def _wrapped(number: Number, count: int) -> Number:
    """number modulo count, for a number below 2 * count."""
    if count & (count - 1) == 0:
        return number & (count - 1)
    return select(compare("uge", number, count), number - count, number)
