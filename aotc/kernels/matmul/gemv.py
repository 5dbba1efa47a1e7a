"""Small-M and small-N matmuls (GEMV among them), which are bound by memory bandwidth.

`small` is the matrix with few rows or columns of C, `large` the other one: A and B, or B and A
where C has few columns. Each element of `large` is read once, in the widest accesses that are known
to be aligned, and multiplied with all of `small` that it meets, which caches hold. Threads share K
and add their accumulators in a fixed order: first the lanes of a warp, then warps, then, where
`split_k` says so, blocks, whose sums a second kernel adds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from math import gcd, prod

from msgspec import Struct

from aotc.analysis.constants import is_constant
from aotc.builder import WIDEST_ACCESS, Buffer, Builder
from aotc.chips import (
    H100,
    MAX_BLOCK_THREADS,
    MAX_THREAD_REGISTERS,
    REGISTERS,
    STATIC_SHARED_BYTES,
    WARP,
)
from aotc.kernels.family import ANY_GPU
from aotc.kernels.lanes import add_over_lanes, halvings
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, EpilogueBuilder, Matrix, Problem
from aotc.kernels.matmul.scalar import (
    Block,
    Coordinate,
    Operands,
    elements_of_c,
    has_known_types,
    launch,
    sum_type,
    wait_for_previous,
)
from aotc.numbers import (
    Condition,
    Number,
    Value,
    compare,
    divide_up,
    minimum,
    signed_maximum,
    unravel,
)

MOST_ROWS_OF_SMALL_M = 8  # rows or columns
_WIDEST_OF_BYTES = 8  # elements of a byte take many instructions
_REDUCTION_THREADS = 128
_MANY_ACCUMULATORS = 64
# Strips of a matrix that is not K-major, as an H200 likes them.
_FEW_STRIPS, _ENOUGH_STRIPS, _MANY_STRIPS = 120, 160, 2 * H100.multiprocessors

# From an index of K and a number of them, the elements of each access.
_Load = Callable[[Number, int], list[list[Value]]]
# From an index of K, what was loaded there and the accumulators, the next accumulators.
_Multiply = Callable[[Number, list[list[Value]], list[Value]], list[Value]]


class Variant(Struct, frozen=True):
    """A block's part: `small` rows of the small matrix (a block for each so many), of the large one

    - if it is K-major: `rows` rows for each `warps_along` of its `warps`, which share K;
    - if it is not: `lanes` accesses side by side; the other lanes, and all warps, share K.

    `load_bytes`: the bytes of an access to the large matrix, a power of two up to 16. `unroll`: how
    many accesses a thread begins before it uses the first. `split_k`: so many blocks share K.
    `is_right`: the small matrix is B. `uses_pdl`: programmatic dependent launch (from sm_90 on):
    the kernel may start while the one before it runs, and waits for that one itself.
    """

    small: int
    warps: int
    load_bytes: int
    unroll: int
    rows: int = 1
    warps_along: int = 1
    lanes: int = WARP
    split_k: int = 1
    is_right: bool = False
    uses_pdl: bool = False


class _Operand(Struct, frozen=True):
    """A or B. `extent`: its rows or columns of C, None if unknown. `is_k_major`: K is
    contiguous."""

    matrix: Matrix
    extent: int | None
    is_k_major: bool


def _operands(problem: Problem, is_right: bool) -> tuple[_Operand, _Operand]:
    """The small operand and the large one."""
    a = _Operand(problem.a, problem.m, not problem.a.transposed)
    b = _Operand(problem.b, problem.n, problem.b.transposed)
    return (b, a) if is_right else (a, b)


def _k_major_shapes(
    problem: Problem, small_rows: int, width: int
) -> list[tuple[int, int, int, int]]:
    """Warps, those of them along K, rows, unroll: for one row, as many loads at once as there are
    in K. (Of more, two rows save loads and conversions of the small matrix.)"""
    if small_rows > 1:
        return []
    k = problem.k or 1 << 30
    step = WARP * width  # of a warp
    along = next((warps for warps in (4, 2) if warps * step * 4 <= k), 1)
    return [(4, along, 1, 8 if 4 * step * 8 <= k else 4)]


def _other_shapes(large: _Operand, small_rows: int, width: int) -> list[tuple[int, int, int, int]]:
    """Warps, lanes side by side, unroll, split-K: for one row, strips as wide as leave enough of
    them for all multiprocessors, and fewer loads of a thread where there are many."""
    if small_rows > 1:
        return []
    columns = (large.extent or 1 << 12) // width
    lanes = 8 if columns >= 8 * _ENOUGH_STRIPS else 4 if columns >= 4 * _FEW_STRIPS else 2
    return [(16, lanes, 4 if columns > lanes * _MANY_STRIPS else 8, 1)]


class _Shape:
    """What a block and a thread have, in numbers."""

    def __init__(self, problem: Problem, variant: Variant) -> None:
        self.type = sum_type(problem)
        self.small, self.large = _operands(problem, variant.is_right)
        self.width = max(1, variant.load_bytes // ELEMENT_BYTES[self.large.matrix.element])
        self.threads = variant.warps * WARP
        if self.large.is_k_major:
            # A thread has accesses to `rows` rows, at the same k.
            self.lanes_along, self.warps_along = WARP, variant.warps_along
            self.per_thread = variant.rows
            self.strip = variant.rows * (variant.warps // variant.warps_along)
        else:
            # A thread has accesses to one row after the other, at the same columns.
            self.lanes_along, self.warps_along = WARP // variant.lanes, variant.warps
            self.per_thread = self.width
            self.strip = self.width * variant.lanes
        accumulators = variant.small * self.per_thread
        # About what a thread needs: accumulators, what it has loaded and converted, factors,
        # addresses.
        at_once = variant.unroll * (variant.rows if self.large.is_k_major else 1)
        words = ELEMENT_BYTES[self.type] // 4
        self.registers = (accumulators + at_once * self.width) * words + variant.small + 22
        # Sums of warps: of each that shares outputs, of each row of `small`, of the strip.
        self.shared = (self.warps_along, variant.small, self.strip)
        self.shared_bytes = self.warps_along * variant.small * self.strip * ELEMENT_BYTES[self.type]

        # Of K, what the block's threads load before they use any of it; whether all of them do.
        first = self.lanes_along * self.warps_along * variant.unroll
        first *= self.width if self.large.is_k_major else 1
        extent, has_whole_k = self.large.extent, variant.split_k == 1 and first <= (problem.k or 0)
        is_whole = self.large.is_k_major or (extent or self.width + 1) % self.width == 0
        self.has_whole_start = has_whole_k and is_whole


class _Kernel(_Shape):
    def __init__(
        self,
        b: Builder,
        problem: Problem,
        variant: Variant,
        arguments: Arguments,
        epilogue: EpilogueBuilder | None,
    ) -> None:
        super().__init__(problem, variant)
        self.b, self.problem, self.variant, self.epilogue = b, problem, variant, epilogue
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
        """One kernel, or two with a buffer between them."""
        b, o, variant = self.b, self.operands, self.variant
        groups = divide_up(self.small_extent, variant.small)
        strips = divide_up(self.large_extent, self.strip)
        # Blocks that follow each other have the same of the large matrix, or are side by side.
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
        self.first_large = strip * self.strip
        self.warp, self.lane = unravel(block.thread, WARP)
        accumulators = self._over_rows() if self.large.is_k_major else self._over_columns()
        sums = self._reduce_warp(accumulators)
        self.warp_sums = self.b.shared_buffer(block.shared, 0, self.shared, self.type)
        self._share(*sums)
        self.b.barrier()
        self._store()

    # --- Accumulators of a thread -------------------------------------------------------------

    def _over_rows(self) -> list[Value]:
        """The thread's accumulators, for a K-major large matrix: it reads from several rows."""
        b, variant = self.b, self.variant
        group, along = unravel(self.warp, self.warps_along)
        self.along = along
        self.column = group * variant.rows
        last = self.large_extent - 1
        first = self.first_large + self.column
        # Row indices are clamped to the last row; accumulators of rows beyond it are not stored.
        rows = [minimum(first + i, last) for i in range(variant.rows)]
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
        column = self.first_large + self.column
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
        """The accumulators over one slice of K. Slices take chunks of `chunk` elements by turns;
        `at_once` chunks are loaded before the first is used; of a constant, the first ones before
        the wait for the previous kernel."""
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
            # What is no whole chunk, element by element.
            rest = (end - begin) % chunk
            sums = iterate(end - rest + slice_, end, slices, 1, 1)
        return sums

    def _k_range(self, chunk: int) -> tuple[Number, Number]:
        """Where K begins and ends for this block: at whole chunks, but for the end of the last."""
        k, split_k = self.operands.k, self.variant.split_k
        if split_k == 1:
            return 0, k
        extent = divide_up(divide_up(k, split_k), chunk) * chunk
        begin = minimum(self.split * extent, k)
        return begin, minimum(begin + extent, k)

    def _load_large(self, number: Number, k: Number, count: int) -> list[Value]:
        """Elements of row (or from column) `number` at k, of the accumulators' type."""
        at = (number, k) if self.large.is_k_major else (k, number)
        values = self.b.load_elements(self.large_buffer, self.operands.at(self.batch, *at), count)
        return [self.b.convert(value, self.type) for value in values]

    def _load_small(self, k: Number, count: int) -> Iterator[tuple[int, int, Value]]:
        """This block's elements of the small matrix, from k on: each with its row's number and how
        far behind k it is. Behind the last row, the last one once more; its accumulators are
        dropped."""
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

    # --- Sums of a warp, a block, all blocks --------------------------------------------------

    def _reduce_warp(self, accumulators: Sequence[Value]) -> tuple[list[Value], Number, Condition]:
        """Adds the accumulators of the lanes that share K; see `add_over_lanes`."""
        distances = halvings(WARP, WARP // self.lanes_along)
        return add_over_lanes(self.b, self.lane, accumulators, distances)

    def _share(self, values: Sequence[Value], first: Number, writes: Condition) -> None:
        """Writes a warp's sums to shared memory."""
        with self.b.where(writes):
            for number, value in enumerate(values):
                i, j = unravel(first + number, self.per_thread)
                self.b.store(value, self.warp_sums, [self.along, i, self.column + j])

    def _store(self) -> None:
        """Adds the sums of warps, one after the other; each thread stores some of the results."""
        outputs = self.variant.small * self.strip
        for first in range(0, outputs, self.threads):
            number = self.thread + first
            is_whole = first + self.threads <= outputs
            with self.b.where(is_whole or compare("ult", number, outputs)):
                self._store_one(number)

    def _store_one(self, number: Number) -> None:
        b, o = self.b, self.operands
        i, j = unravel(number, self.strip)
        small, large = self.first_small + i, self.first_large + j
        is_there = compare("ult", small, self.small_extent)
        with b.where(is_there & compare("ult", large, self.large_extent)):
            total = b.load(self.warp_sums, [0, i, j])
            for warp in range(1, self.warps_along):
                total = b.add(total, b.load(self.warp_sums, [warp, i, j]))
            row, column = (large, small) if self.variant.is_right else (small, large)
            if self.workspace is None:
                self._store_result((self.batch, row, column), total)
                return
            matrix = self.batch * self.variant.split_k + self.split
            b.store(total, self.workspace, [(matrix * o.m + row) * o.n + column])

    def _store_result(self, at: Coordinate, total: Value) -> None:
        b, o = self.b, self.operands
        values = elements_of_c(b, o, self.epilogue, [total], at)
        b.store_elements(values, o.c, o.at(*at))

    # --- Split-K ------------------------------------------------------------------------------

    def _allocate(self) -> Buffer:
        """The buffer of the sums of blocks: for each batch and split, a matrix like C."""
        o = self.operands
        count = (o.batches * self.variant.split_k) * (o.m * o.n)
        return Buffer(self.b.alloc([count], f"memref<?x{self.type}>"))

    def _reduce_split_k(self, block: Block, workspace: Buffer, elements: Number) -> None:
        """The second kernel: a thread for each element of C."""
        b, o, split_k = self.b, self.operands, self.variant.split_k
        number = block.index * _REDUCTION_THREADS + block.thread
        with b.where(compare("ult", number, elements)):
            batch, place = unravel(number, o.m * o.n)
            first = batch * split_k
            places = [(first + i) * (o.m * o.n) + place for i in range(split_k)]
            total = reduce(b.add, [b.load(workspace, [at]) for at in places])
            row, column = unravel(place, o.n)
            self._store_result((batch, row, column), total)


class Gemv(MatmulFamily[Problem]):
    """See the module's docstring."""

    name = "one pass over the large matrix"
    mnemonic = "gemv"
    target = ANY_GPU
    variant_type = Variant
    has_cost_model = False
    is_bandwidth_bound = True

    def can_take(self, problem: Problem, variant: Variant) -> bool:
        if not has_known_types(problem):
            return False
        _, large = _operands(problem, variant.is_right)
        width = variant.load_bytes // ELEMENT_BYTES[large.matrix.element]
        kernel = _Shape(problem, variant)
        return (
            1 <= variant.warps <= MAX_BLOCK_THREADS // WARP
            and 0 < variant.load_bytes <= min(WIDEST_ACCESS, large.matrix.alignment)
            and width > 0
            and large.matrix.alignment % variant.load_bytes == 0
            and variant.lanes in (1, 2, 4, 8, 16, WARP)
            and variant.warps % variant.warps_along == 0
            and kernel.shared_bytes <= STATIC_SHARED_BYTES
            and kernel.registers <= min(MAX_THREAD_REGISTERS, REGISTERS // kernel.threads)
        )

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        """For at most 16 rows or columns: of the smaller of the two."""
        if not has_known_types(problem):
            return ()
        known = [size if size is not None else 1 << 30 for size in (problem.m, problem.n)]
        is_right = known[1] < known[0]
        small_rows = min(known)
        if small_rows > 16:
            return ()
        small_rows = max(small_rows, 1)
        _, large = _operands(problem, is_right)
        element_bytes = ELEMENT_BYTES[large.matrix.element]
        widest = gcd(WIDEST_ACCESS, large.matrix.alignment)
        if large.is_k_major:
            shapes = (
                *_k_major_shapes(problem, small_rows, widest // element_bytes),
                *(
                    (4, 4, 2, 2),
                    (8, 1, 2, 2),
                    (8, 1, 4, 1),
                    (8, 1, 1, 4),
                    (8, 8, 1, 4),
                    (8, 2, 2, 2),
                ),
            )
            found = [
                Variant(small_rows, warps, widest, unroll, rows, along, is_right=is_right)
                for warps, along, rows, unroll in shapes
            ]
        else:
            # Narrower accesses, of more lanes, where a thread would have too many sums.
            if small_rows == 1 and element_bytes == 1:
                widest = min(widest, _WIDEST_OF_BYTES)
            while (
                widest > element_bytes and small_rows * widest // element_bytes > _MANY_ACCUMULATORS
            ):
                widest //= 2
            found = [
                Variant(
                    *(small_rows, warps, widest, unroll),
                    lanes=min(WARP, lanes * WIDEST_ACCESS // widest),
                    split_k=split_k,
                    is_right=is_right,
                )
                for warps, lanes, unroll, split_k in (
                    *_other_shapes(large, small_rows, widest // element_bytes),
                    *((16, 4, 8, 1), (16, 4, 4, 1), (16, 8, 8, 1), (16, 8, 4, 1), (16, 4, 16, 1)),
                    *((8, 8, 8, 4), (8, 16, 4, 8), (8, 4, 4, 1), (16, 2, 8, 1), (8, 8, 4, 1)),
                )
            ]
        able = (variant for variant in found if self.can_take(problem, variant))
        return tuple(dict.fromkeys(able))

    def tile_name(self, problem: Problem, variant: Variant) -> str:
        del problem
        tile = f"m{variant.small}_w{variant.warps}_b{variant.load_bytes}"
        return tile if variant.split_k == 1 else f"{tile}_splitk{variant.split_k}"

    def shared_bytes(self, problem: Problem, variant: Variant) -> int:
        return _Shape(problem, variant).shared_bytes

    def insert(
        self,
        b: Builder,
        problem: Problem,
        variant: Variant,
        arguments: Arguments,
        epilogue: EpilogueBuilder | None = None,
    ) -> None:
        _Kernel(b, problem, variant, arguments, epilogue).build()


GEMV = Gemv()
