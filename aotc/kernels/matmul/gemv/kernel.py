"""The kernel of small-M and small-N matmuls.

`small` is the operand with the small extent, and `large` the other one: A and B, or B and A if C
has few columns. Each element of `large` is read once, in the widest accesses that are known to be
aligned, and multiplied with the corresponding elements of `small`, which the caches hold. Threads
share K, and their accumulators are added in a fixed order: first over the lanes of a warp, then
over warps, and with `split_k` over blocks, by a second kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from math import gcd, prod

from aotc.analysis.constants import is_constant
from aotc.builder import WIDEST_ACCESS, Buffer, Builder
from aotc.builder.numbers import (
    Condition,
    Number,
    Value,
    compare,
    divide_up,
    minimum,
    signed_maximum,
    unravel,
)
from aotc.chips import (
    WARP,
)
from aotc.kernels.matmul.gemv.shape import Shape, Variant
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, Problem
from aotc.kernels.matmul.scalar import (
    Block,
    Coordinate,
    Operands,
    elements_of_c,
    launch,
    wait_for_previous,
)
from aotc.kernels.warp_reduction import butterfly_distances, reduce_over_lanes

_REDUCTION_THREADS = 128

# Given an index along K and a number of elements, returns the elements of each access.
_Load = Callable[[Number, int], list[list[Value]]]
# Given an index along K, the elements loaded there and the accumulators, returns the new
# accumulators.
_Multiply = Callable[[Number, list[list[Value]], list[Value]], list[Value]]


class Kernel(Shape):
    def __init__(
        self, b: Builder, problem: Problem, variant: Variant, arguments: Arguments
    ) -> None:
        super().__init__(problem, variant)
        self.b, self.problem, self.variant = b, problem, variant
        self.epilogue = arguments.epilogue
        self.operands = operands = Operands(b, problem, arguments)
        buffers, extents = (operands.a, operands.b), (operands.m, operands.n)
        if variant.is_right:
            buffers, extents = buffers[::-1], extents[::-1]
        self.small_buffer, self.large_buffer = buffers
        self.small_extent, self.large_extent = extents
        self.workspace: Buffer | None = None
        large = arguments.a if variant.is_right else arguments.b
        self._loads_early = variant.uses_pdl and self.has_whole_start and is_constant(large)

    def build(self) -> None:
        """Launches one kernel, or with split-K two, with a workspace between them."""
        b, o, variant = self.b, self.operands, self.variant
        groups = divide_up(self.small_extent, variant.small)
        strips = self._strips()
        # Consecutive blocks read the same part of the large matrix, or adjacent parts.
        counts = (variant.split_k, strips, groups)
        blocks = prod(counts, start=o.batches)
        if variant.split_k > 1:
            self.workspace = self._allocate()
        with launch(
            b,
            blocks,
            self.threads,
            self.shared_bytes,
            overlaps_previous=variant.uses_pdl,
            waits_later=self._loads_early,
        ) as block:
            self._compute(block, counts)
        if self.workspace is not None:
            elements = o.batches * (o.m * o.n)
            blocks = divide_up(elements, _REDUCTION_THREADS)
            with launch(b, blocks, _REDUCTION_THREADS, role="reduction") as block:
                self._reduce_split_k(block, self.workspace, elements)
            b.op("memref.dealloc", [self.workspace.value])

    def _compute(self, block: Block, counts: tuple[Number, ...]) -> None:
        self.thread = block.thread
        self.batch, self.split, strip, group = unravel(block.index, *counts)
        self.first_small = group * self.variant.small
        self.number_of_strip = strip
        self.warp, self.lane = unravel(block.thread, WARP)
        accumulators = self._over_rows() if self.large.is_k_major else self._over_columns()
        sums = self._reduce_warp(accumulators)
        self.warp_sums = self.b.shared_buffer(block.shared, 0, self.shared, self.type)
        self._share(*sums)
        self.b.barrier()
        self._store()

    def _strips(self) -> Number:
        """The number of strips of the large matrix."""
        return divide_up(self.large_extent, self.strip)

    def _in_large(self, number: Number) -> Number:
        """The row or column of the large matrix that is `number` in the block's strip."""
        return self.number_of_strip * self.strip + number

    # --- Accumulators of a thread -------------------------------------------------------------

    def _over_rows(self) -> list[Value]:
        """The thread's accumulators, for a K-major large matrix: it reads from several rows."""
        b, variant = self.b, self.variant
        group, along = unravel(self.warp, self.warps_along)
        self.along = along
        self.column = group * variant.rows
        last = self.large_extent - 1
        # Row indices are clamped to the last row; accumulators of rows beyond it are not stored.
        rows = [minimum(self._in_large(self.column + i), last) for i in range(variant.rows)]
        slice_ = along * WARP + self.lane

        def load(k: Number, width: int) -> list[list[Value]]:
            return [self._load_large(row, k, width) for row in rows]

        def multiply(k: Number, loaded: list[list[Value]], sums: list[Value]) -> list[Value]:
            for i, number, factor in self._load_small(k, len(loaded[0])):
                for j, values in enumerate(loaded):
                    at = i * variant.rows + j
                    sums[at] = b.multiply_add(factor, values[number], sums[at])
            return sums

        return self._mainloop(slice_, self.width, variant.unroll, load, multiply)

    def _over_columns(self) -> list[Value]:
        """The thread's accumulators, for a large matrix that is not K-major: it reads the same
        columns of several rows."""
        extent = self.large.extent
        lane_along, lane = unravel(self.lane, self.variant.lanes)
        self.along = self.warp
        self.column = lane * self.width
        slice_ = self.warp * self.lanes_along + lane_along
        column = self._in_large(self.column)
        if self.width == 1 or (extent is not None and extent % self.width == 0):
            # A strip may reach beyond the last column: column indices are clamped to the last
            # access.
            last = self.large_extent - self.width
            return self._over_whole_columns(slice_, minimum(column, last))
        return self.b.choose(
            compare("ult", column + (self.width - 1), self.large_extent),
            [self.type] * (self.variant.small * self.per_thread),
            partial(self._over_whole_columns, slice_, column),
            partial(self._over_some_columns, slice_, column),
        )

    def _over_whole_columns(self, slice_: Number, column: Number) -> list[Value]:
        def load(k: Number, count: int) -> list[list[Value]]:
            return [self._load_large(column, k + i, self.width) for i in range(count)]

        return self._mainloop(slice_, self.variant.unroll, 1, load, self._multiply_columns)

    def _over_some_columns(self, slice_: Number, column: Number) -> list[Value]:
        """The accumulators, read element by element; column indices are clamped to the last one."""
        last = self.large_extent - 1
        columns = [minimum(column + i, last) for i in range(self.width)]

        def load(k: Number, count: int) -> list[list[Value]]:
            rows = [k + i for i in range(count)]
            return [[self._load_large(at, row, 1)[0] for at in columns] for row in rows]

        return self._mainloop(slice_, 1, 1, load, self._multiply_columns)

    def _multiply_columns(
        self, k: Number, loaded: list[list[Value]], sums: list[Value]
    ) -> list[Value]:
        for i, number, factor in self._load_small(k, len(loaded)):
            for j, value in enumerate(loaded[number]):
                at = i * self.width + j
                sums[at] = self.b.multiply_add(factor, value, sums[at])
        return sums

    def _mainloop(
        self, slice_: Number, chunk: int, at_once: int, load: _Load, multiply: _Multiply
    ) -> list[Value]:
        """The accumulators over one slice of K. Slices alternate in chunks of `chunk` elements.
        `at_once` chunks are loaded before the first one is used. If the large matrix is a constant,
        the first chunks may be loaded before the wait for the previous kernel."""
        b, slices = self.b, self.lanes_along * self.warps_along
        begin, end = self._k_range(chunk)
        stride = slices * chunk
        sums = [b.zero(self.type)] * (self.variant.small * self.per_thread)

        def iterate(k: Number, stop: Number, step: int, count: int, width: int) -> list[Value]:
            with b.loop(k, stop, step, sums) as loop:
                ks = [loop.index + number * stride for number in range(count)]
                loaded = [load(k, width) for k in ks]
                added = loop.carried
                for k, values in zip(ks, loaded, strict=True):
                    added = multiply(k, values, added)
                loop.next(added)
            return loop.results

        k = begin + slice_ * chunk
        if self._loads_early:
            ks = [k + number * stride for number in range(at_once)]
            with b.reads_constants():
                loaded = [load(one, chunk) for one in ks]
            wait_for_previous(b)
            for one, values in zip(ks, loaded, strict=True):
                sums = multiply(one, values, sums)
            k = k + stride * at_once
        if at_once > 1:
            stop = end - (stride * (at_once - 1) + chunk - 1)
            step = stride * at_once
            sums = iterate(k, stop, step, at_once, chunk)
            k = k + divide_up(signed_maximum(stop - k, 0), step) * step
        sums = iterate(k, end - (chunk - 1), stride, 1, chunk)
        if chunk > 1 and not (self.problem.k is not None and self.problem.k % chunk == 0):
            # The remainder that is no whole chunk, element by element.
            rest = (end - begin) % chunk
            sums = iterate(end - rest + slice_, end, slices, 1, 1)
        return sums

    def _k_range(self, chunk: int) -> tuple[Number, Number]:
        """The block's range of K. Its bounds are multiples of a chunk, except for the end of K."""
        k, split_k = self.operands.k, self.variant.split_k
        if split_k == 1:
            return 0, k
        extent = divide_up(divide_up(k, split_k), chunk) * chunk
        begin = minimum(self.split * extent, k)
        return begin, minimum(begin + extent, k)

    def _load_large(self, number: Number, k: Number, count: int) -> list[Value]:
        """Loads `count` elements of the large matrix, in the accumulator type: from row `number` at
        `k`, or from column `number` on in row `k`."""
        at = (number, k) if self.large.is_k_major else (k, number)
        values = self.b.load_elements(self.large_buffer, self.operands.at(self.batch, *at), count)
        return [self.b.convert(value, self.type) for value in values]

    def _load_small(self, k: Number, count: int) -> Iterator[tuple[int, int, Value]]:
        """This block's elements of the small matrix, for `count` indices from `k` on. Yields the
        row in the block, the offset from `k`, and the element. Rows past the last one repeat it;
        their accumulators are not stored."""
        b, side, height = self.b, self.small, self.variant.small
        bytes_ = ELEMENT_BYTES[side.matrix.element]
        widest = max(1, gcd(WIDEST_ACCESS, side.matrix.alignment) // bytes_)
        is_whole = side.extent is not None and side.extent % height == 0
        rows = [self.first_small + i for i in range(height)]
        if not is_whole:
            last = self.small_extent - 1
            rows = [minimum(row, last) for row in rows]
        if side.is_k_major:
            width = gcd(count, widest)
            places = [(i, j) for i in range(height) for j in range(0, count, width)]
        else:
            width = gcd(height, widest) if is_whole else 1
            places = [(i, j) for j in range(count) for i in range(0, height, width)]
        for i, j in places:
            at = (rows[i], k + j) if side.is_k_major else (k + j, rows[i])
            values = b.load_elements(self.small_buffer, self.operands.at(self.batch, *at), width)
            converted = [b.convert(value, self.type) for value in values]
            for number, value in enumerate(converted):
                yield (i, j + number, value) if side.is_k_major else (i + number, j, value)

    # --- Reductions over a warp, a block, all blocks ------------------------------------------

    def _reduce_warp(self, accumulators: Sequence[Value]) -> tuple[list[Value], Number, Condition]:
        """Adds the accumulators of the lanes that share K; see `reduce_over_lanes`."""
        distances = butterfly_distances(WARP, WARP // self.lanes_along)
        return reduce_over_lanes(self.b, self.lane, accumulators, distances)

    def _share(self, values: Sequence[Value], first: Number, writes: Condition) -> None:
        """Writes a warp's accumulators to shared memory."""
        with self.b.where(writes):
            for number, value in enumerate(values):
                i, j = unravel(first + number, self.per_thread)
                self.b.store(value, self.warp_sums, [self.along, i, self.column + j])

    def _store(self) -> None:
        """Adds the accumulators of warps in order. Each thread stores some of the results."""
        outputs = self.variant.small * self.strip
        for first in range(0, outputs, self.threads):
            number = self.thread + first
            is_whole = first + self.threads <= outputs
            with self.b.where(is_whole or compare("ult", number, outputs)):
                self._store_one(number)

    def _store_one(self, number: Number) -> None:
        b, o = self.b, self.operands
        i, j = unravel(number, self.strip)
        small, large = self.first_small + i, self._in_large(j)
        is_there = compare("ult", small, self.small_extent)
        with b.where(is_there & compare("ult", large, self.large_extent)):
            total = self._sum_of_warps(i, j)
            row, column = (large, small) if self.variant.is_right else (small, large)
            if self.workspace is None:
                self._store_result((self.batch, row, column), total)
                return
            matrix = self.batch * self.variant.split_k + self.split
            b.store(total, self.workspace, [(matrix * o.m + row) * o.n + column])

    def _sum_of_warps(self, i: Number, j: Number) -> Value:
        """The sum for row i of the block's small matrix and row or column j of its strip."""
        b = self.b
        sums = [b.load(self.warp_sums, [warp, i, j]) for warp in range(self.warps_along)]
        return reduce(b.add, sums)

    def _store_result(self, at: Coordinate, total: Value) -> None:
        b, o = self.b, self.operands
        values = elements_of_c(b, o, self.epilogue, [total], at)
        b.store_elements(values, o.c, o.at(*at))

    # --- Split-K ------------------------------------------------------------------------------

    def _allocate(self) -> Buffer:
        """The buffer of partial accumulators of blocks: a matrix like C for each batch and part."""
        o = self.operands
        count = (o.batches * self.variant.split_k) * (o.m * o.n)
        return Buffer(self.b.alloc([count], f"memref<?x{self.type}>"))

    def _reduce_split_k(self, block: Block, workspace: Buffer, elements: Number) -> None:
        """The code of the second kernel, in which a thread computes an element of C."""
        b, o, split_k = self.b, self.operands, self.variant.split_k
        number = block.index * _REDUCTION_THREADS + block.thread
        with b.where(compare("ult", number, elements)):
            batch, place = unravel(number, o.m * o.n)
            first = batch * split_k
            places = [(first + i) * (o.m * o.n) + place for i in range(split_k)]
            total = reduce(b.add, [b.load(workspace, [at]) for at in places])
            row, column = unravel(place, o.n)
            self._store_result((batch, row, column), total)
