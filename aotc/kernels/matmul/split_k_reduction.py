"""The reduction kernel of grid split-K. The blocks that share a tile of C store partial
accumulators, and this kernel adds them in the order of K."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Value, ceil_divide, compare, minimum, signed_maximum
from aotc.chips import H100
from aotc.kernels.matmul.mma_sync.store import elements_of_c
from aotc.kernels.matmul.mma_sync.tiles import CHUNK_BYTES, ProblemShape
from aotc.kernels.matmul.problem import Arguments, Matrix, Place, Problem
from aotc.kernels.matmul.scalar import accumulator_type_of
from aotc.kernels.matmul.waves import LEAST_PART, MOST_PARTS
from aotc.kernels.tensor_core import add_accumulators

_THREADS = 256
# The number of partial accumulators that a thread loads at once if their total number is unknown.
_AT_ONCE = 4
# Rows of partial accumulators are padded to a multiple of this number of elements (at least 16
# bytes).
_PITCH_UNIT = 4
# Stores an element of C, given its batch, row and column, and its accumulator.
_Store = Callable[[Number, Number, Number, Value], None]


def partial_of(problem: Problem) -> Problem:
    """The problem of the first kernel, whose C consists of matrices of partial accumulators: one
    for each split of each batch. Rows begin at multiples of 16 bytes."""
    type_ = accumulator_type_of(problem)
    sums = Matrix(f"memref<?x?x?x{type_}>", type_, (problem.m, problem.n), None, CHUNK_BYTES)
    return replace(problem, c=sums, accumulator=type_, adds=False)


def parts_of_few_tiles(tiles: Number, k: Number, blocks: int) -> Number:
    """The number of parts of K that the program chooses for C of so many tiles, in all matmuls of
    the batch: as many as a large GPU runs blocks at once, of which each multiprocessor has
    `blocks`, and few enough for `LEAST_PART`."""
    at_once = blocks * H100.multiprocessors
    enough = minimum(at_once // signed_maximum(tiles, 1), k // LEAST_PART)
    return signed_maximum(minimum(enough, MOST_PARTS), 1)


def part_extent(k: Number, tile: int, split_k: Number) -> Number:
    """The K extent of each of `split_k` parts: whole tiles, so that the last parts may be empty."""
    return ceil_divide(k, split_k * tile) * tile


class SplitKReduction:
    """The buffer of the partial accumulators of `split_k` parts of K, and the kernel that adds
    them. The constructor allocates the buffer. C's rows are those from `first_row` on, as many as
    `shape` has."""

    def __init__(
        self,
        b: Builder,
        problem: Problem,
        split_k: Number,
        shape: ProblemShape,
        first_row: Number = 0,
    ) -> None:
        self.b, self.problem, self.split_k, self.shape = b, problem, split_k, shape
        self.first_row = first_row
        pitch = ceil_divide(shape.n, _PITCH_UNIT) * _PITCH_UNIT
        # The number of matrices of partial accumulators. Those of a batch are consecutive.
        self.count = shape.batches * split_k
        self.buffer = Buffer(
            b.alloc(b.values([self.count, shape.m, pitch]), partial_of(problem).c.type)
        )

    def matrix(self, number: Number) -> Buffer:
        return Buffer(self.buffer.value, [number])

    def reduce(self, store: _Store) -> None:
        """Launches the kernel, and frees the buffer. Each thread computes one element of C, and
        each block a part of a row."""
        b, shape = self.b, self.shape
        across = ceil_divide(shape.n, _THREADS)
        blocks = shape.batches * shape.m * across
        with b.launch_unless_empty(blocks, _THREADS, role="reduction") as launch:
            line = launch.block // across
            column = launch.block % across * _THREADS + launch.thread
            batch, row = line // shape.m, line % shape.m
            with b.where(compare("slt", column, shape.n)):
                store(batch, row, column, self._sum(batch * self.split_k, row, column))
        b.op("memref.dealloc", [self.buffer.value])

    def reduce_to(self, arguments: Arguments) -> None:
        """Reduces to the problem's C, with its epilogue."""
        b, problem = self.b, self.problem

        def store(batch: Number, number: Number, column: Number, total: Value) -> None:
            row = self.first_row + number
            own = batch if problem.batched else None
            target = Buffer(arguments.c, [] if own is None else [own])
            if problem.adds:
                old = b.load(target, [row, column])
                total = add_accumulators(b, b.convert(old, total.type), total)
            place = Place(own, row, [column])
            [value] = elements_of_c(b, problem, [total], place, arguments.epilogue)
            b.store(value, target, [row, column])

        self.reduce(store)

    def _sum(self, first: Number, row: Number, column: Number) -> Value:
        """The sum of the partial accumulators of an element, in the order of the parts. Those of
        the first part are in matrix `first`."""

        def load(split: Number) -> Value:
            return self.b.load(self.buffer, [first + split, row, column])

        return sum_of_parts(self.b, self.split_k, load)


def sum_of_parts(b: Builder, split_k: Number, load: Callable[[Number], Value]) -> Value:
    """The sum of the partial accumulators of an element, of which `load` loads that of a part, in
    the order of the parts."""
    if isinstance(split_k, int):
        total = load(0)
        for split in range(1, split_k):
            total = add_accumulators(b, total, load(split))
        return total
    steps = ceil_divide(split_k - 1, _AT_ONCE)
    with b.loop(0, steps, 1, [load(0)]) as loop:
        # Loaded together to overlap their latencies. Past the end, the last one is loaded again.
        begin = loop.index * _AT_ONCE + 1
        numbers = [begin + number for number in range(_AT_ONCE)]
        loaded = [load(minimum(number, split_k - 1)) for number in numbers]
        [total] = loop.carried
        for number, one in zip(numbers, loaded, strict=True):
            added = add_accumulators(b, total, one)
            total = b.select(compare("slt", number, split_k), added, total)
        loop.next([total])
    return loop.results[0]
