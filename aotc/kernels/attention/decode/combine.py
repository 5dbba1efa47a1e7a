"""The kernel that combines the partial results of the splits of the keys to O, a block per query.

Each thread has the largest score of one split. The weight of a split is exp(its largest score - the
largest score of all splits). Sums are in f32, in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import (
    Float,
    Number,
    Value,
    compare,
    fma,
    maximum_number,
    minimum,
    unravel,
)
from aotc.chips import WARP
from aotc.kernels.attention.arithmetic import LOG2_E, minus_infinity, unless_empty
from aotc.kernels.attention.problem import Attention
from aotc.kernels.matmul.scalar import launch
from aotc.kernels.warp_reduction import butterfly_distances

MOST_SPLITS = 128
_THREADS = MOST_SPLITS
_WARPS = _THREADS // WARP
_AT_ONCE = 16


class Partials(Struct, frozen=True):
    """The partial results of each query and each split, in f32 buffers: the accumulators of P · V
    (`o`), and the largest score and the sum of P (`state`)."""

    o: Buffer
    state: Buffer

    @staticmethod
    def allocate(b: Builder, rows: Number, head_dim: int) -> Partials:
        o, state = (b.alloc([rows], f"memref<?x{n}xf32>") for n in (head_dim, 2))
        return Partials(Buffer(o), Buffer(state))

    def free(self, b: Builder) -> None:
        for buffer in (self.o, self.state):
            b.op("memref.dealloc", [buffer.value])


def exp(b: Builder, difference: Float) -> Float:
    """e to the power `difference`; 0 for -infinity."""
    power = difference * b.constant(LOG2_E, "f32")
    found: Float = b.op("math.exp2", [power], "f32")
    return found


def combine(
    b: Builder,
    problem: Attention,
    partials: Partials,
    o: Buffer,
    batches: Number,
    splits: Number,
    *,
    overlaps_previous: bool,
) -> None:
    """Inserts the kernel's launch."""
    head_dim = problem.head_dim or 0
    shared = _shared_bytes(head_dim)
    early = overlaps_previous
    with launch(b, batches, _THREADS, shared, overlaps_previous=early, role="combine") as block:
        assert block.shared is not None
        _Combine(b, problem, partials, block.shared, splits, block.index, block.thread).build(o)


def _columns(head_dim: int) -> int:
    """The columns of a thread: 16 bytes of f32, or more if a block's threads would not cover a
    row."""
    return max(4, head_dim // _THREADS)


def _shared_bytes(head_dim: int) -> int:
    """The dynamic shared memory: the weights, two values of each warp, and sums of rows."""
    return 4 * (_THREADS + 2 * _WARPS + _THREADS * _columns(head_dim))


class _Combine:
    def __init__(
        self,
        b: Builder,
        problem: Attention,
        partials: Partials,
        shared: Value,
        splits: Number,
        query: Number,
        thread: Number,
    ) -> None:
        self.b, self.problem, self.partials, self.splits = b, problem, partials, splits
        self.query, self.thread = query, thread
        self.head_dim = problem.head_dim or 0
        self.width = _columns(self.head_dim)
        self.lanes = self.head_dim // self.width
        self.rows = _THREADS // self.lanes
        self.weights = b.shared_buffer(shared, 0, (_THREADS,), "f32")
        self.of_warps = b.shared_buffer(shared, 4 * _THREADS, (2, _WARPS), "f32")
        place, shape = 4 * (_THREADS + 2 * _WARPS), (self.rows, self.head_dim)
        self.sums = b.shared_buffer(shared, place, shape, "f32")
        self.first = query * splits

    def build(self, o: Buffer) -> None:
        b, thread = self.b, self.thread
        row = self.first + minimum(thread, self.splits - 1)
        is_there = compare("ult", thread, self.splits)
        own_max, own_sum = (b.load(self.partials.state, [row, i]) for i in range(2))
        own_max = b.select(is_there, own_max, minus_infinity(b))
        largest = self._over_block(0, own_max, maximum_number)
        weight = exp(b, own_max - unless_empty(b, largest, largest))
        b.store(weight, self.weights, [thread])
        total = self._over_block(1, b.select(is_there, own_sum * weight, b.zero("f32")), b.add)
        self._add_splits()
        b.barrier()
        inverse: Float = b.constant(1, "f32") / total
        if self.problem.masked_rows_are_zero:
            inverse = unless_empty(b, largest, inverse)
        for first in range(0, self.head_dim, _THREADS):
            column = thread + first
            is_column = first + _THREADS <= self.head_dim or compare("ult", column, self.head_dim)
            with b.where(is_column):
                found = b.load(self.sums, [0, column])
                for number in range(1, self.rows):
                    found = found + b.load(self.sums, [number, column])
                value = b.convert(found * inverse, self.problem.o.element)
                b.store(value, o, [self.query, 0, column])

    def _over_block(
        self, number: int, value: Float, join: Callable[[Float, Float], Float]
    ) -> Float:
        """The reduction of a value over the block by `join`. It includes a barrier, which also
        orders previous writes to shared memory."""
        b = self.b
        for distance in butterfly_distances(WARP, 1):
            value = join(value, b.shuffle_xor(value, distance))
        warp, lane = unravel(self.thread, WARP)
        with b.where(compare("eq", lane, 0)):
            b.store(value, self.of_warps, [number, warp])
        b.barrier()
        found: Float = b.load(self.of_warps, [number, 0])
        for other in range(1, _WARPS):
            found = join(found, b.load(self.of_warps, [number, other]))
        return found

    def _add_splits(self) -> None:
        """Writes the weighted sums of every `rows`-th split to shared memory."""
        b = self.b
        row, lane = unravel(self.thread, self.lanes)
        column = lane * self.width
        # The weights of splits past the last one are 0.
        step = min(_AT_ONCE, MOST_SPLITS // self.rows)
        sums = [b.zero("f32")] * self.width
        with b.loop(row, self.splits, step * self.rows, sums) as loop:
            places = [loop.index + number * self.rows for number in range(step)]
            last = self.splits - 1
            loaded = [
                b.load_elements(
                    self.partials.o, [self.first + minimum(place, last), column], self.width
                )
                for place in places
            ]
            found = loop.carried
            for place, values in zip(places, loaded, strict=True):
                weight = b.load(self.weights, [place])
                found = [fma(weight, one, sum_) for one, sum_ in zip(values, found, strict=True)]
            loop.next(found)
        for number, value in enumerate(loop.results):
            b.store(value, self.sums, [row, column + number])
