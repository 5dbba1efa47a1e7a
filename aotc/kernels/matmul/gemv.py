"""Products of a matrix with few rows (or columns) and a large one, which memory's speed decides.

`small` is the one with few, `large` the other: A and B, or B and A where C has few columns. Each
element of `large` is read once, in the widest accesses that are known to be aligned, and multiplied
with all of `small` that it meets, which caches hold. Threads divide k and add what they have in a
fixed order: first the lanes of a warp, then warps, then, where `splits` says so, blocks, whose sums
a second kernel adds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import gcd

from msgspec import Struct

from aotc.chips import H100, MAX_THREAD_REGISTERS, REGISTERS, STATIC_SHARED_BYTES, WARP
from aotc.kernels.family import ANY_GPU
from aotc.kernels.indices import Index
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Finish, Matrix, Problem
from aotc.kernels.matmul.scalar import Operands, finished, has_known_types, sum_type
from aotc.kernels.writer import Buffer, Writer, converted

MOST_FEW = 8  # rows or columns
_WIDEST_ACCESS = 16  # bytes
_WIDEST_OF_BYTES = 8  # elements of a byte take many instructions
_SUMMING_THREADS = 128
_MANY_SUMS = 64
# Strips of a matrix whose rows do not lie along k, as an H200 likes them.
_FEW_STRIPS, _ENOUGH_STRIPS, _MANY_STRIPS = 120, 160, 2 * H100.multiprocessors

# Blocks of this kernel come while the one before ends, and the next one's while this one does.
_EARLY = ("nvvm.griddepcontrol wait", "nvvm.griddepcontrol launch_dependents")

# Of k and how many of k: the elements of an access each.
_Load = Callable[[Index, int], list[list[str]]]
# Of k, what was loaded there, and sums: the next sums.
_Multiply = Callable[[Index, list[list[str]], list[str]], list[str]]


class Variant(Struct, frozen=True):
    """A block's part: `small` rows of the small matrix (a block for each so many), of the large one

    - where its rows lie along k: `rows` rows for each `warps_along` of its `warps`, which divide k;
    - where they do not: `lanes` accesses side by side; the other lanes, and all warps, divide k.

    `load_bytes`: what an access to the large matrix brings, a power of two up to 16. `depth`: how
    many accesses a thread begins before it uses the first. `splits`: so many blocks divide k.
    `is_right`: the small matrix is B. `is_early`: the kernel waits for the one before it, which may
    still run then (from sm_90 on).
    """

    small: int
    warps: int
    load_bytes: int
    depth: int
    rows: int = 1
    warps_along: int = 1
    lanes: int = 32
    splits: int = 1
    is_right: bool = False
    is_early: bool = False


class _Side(Struct, frozen=True):
    """`is_along`: its rows lie along k. `extent`: how many rows or columns it has of C's."""

    matrix: Matrix
    extent: int | None
    is_along: bool


def _sides(problem: Problem, is_right: bool) -> tuple[_Side, _Side]:
    """The small one and the large one."""
    a = _Side(problem.a, problem.m, not problem.a.transposed)
    b = _Side(problem.b, problem.n, problem.b.transposed)
    return (b, a) if is_right else (a, b)


def _shapes_along(problem: Problem, few: int, width: int) -> list[tuple[int, int, int, int]]:
    """Warps, those of them along k, rows, depth: for one row, as many loads at once as there are
    in k. (Of more, two rows save loads and conversions of the small matrix.)"""
    if few > 1:
        return []
    k = problem.k or 1 << 30
    turn = WARP * width  # of a warp
    along = next((warps for warps in (4, 2) if warps * turn * 4 <= k), 1)
    return [(4, along, 1, 8 if 4 * turn * 8 <= k else 4)]


def _shapes_across(large: _Side, few: int, width: int) -> list[tuple[int, int, int, int]]:
    """Warps, lanes side by side, depth, splits: for one row, strips as wide as leave enough of them
    for all multiprocessors, and fewer loads of a thread where there are many."""
    if few > 1:
        return []
    columns = (large.extent or 1 << 12) // width
    lanes = 8 if columns >= 8 * _ENOUGH_STRIPS else 4 if columns >= 4 * _FEW_STRIPS else 2
    return [(16, lanes, 4 if columns > lanes * _MANY_STRIPS else 8, 1)]


class _Shape:
    """What a block and a thread have, in numbers."""

    def __init__(self, problem: Problem, variant: Variant) -> None:
        self.type = sum_type(problem)
        self.small, self.large = _sides(problem, variant.is_right)
        self.width = max(1, variant.load_bytes // ELEMENT_BYTES[self.large.matrix.element])
        self.threads = variant.warps * WARP
        if self.large.is_along:
            # A thread has accesses to `rows` rows, at the same k.
            self.lanes_along, self.warps_along = WARP, variant.warps_along
            self.per_thread = variant.rows
            self.strip = variant.rows * (variant.warps // variant.warps_along)
        else:
            # A thread has accesses to one row after the other, at the same columns.
            self.lanes_along, self.warps_along = WARP // variant.lanes, variant.warps
            self.per_thread = self.width
            self.strip = self.width * variant.lanes
        self.sums = variant.small * self.per_thread
        # About what a thread needs: sums, what it has loaded and converted, factors, addresses.
        at_once = variant.depth * (variant.rows if self.large.is_along else 1)
        words = ELEMENT_BYTES[self.type] // 4
        self.registers = (self.sums + at_once * self.width) * words + variant.small + 22
        # Sums of warps: of each that shares outputs, of each row of `small`, of the strip.
        self.shared = (self.warps_along, variant.small, self.strip)
        self.shared_bytes = self.warps_along * variant.small * self.strip * ELEMENT_BYTES[self.type]


class _Kernel(_Shape):
    def __init__(
        self,
        problem: Problem,
        variant: Variant,
        writer: Writer,
        operands: Operands,
        finish: Finish | None,
    ) -> None:
        super().__init__(problem, variant)
        self.problem, self.variant, self.writer = problem, variant, writer
        self.operands, self.finish = operands, finish
        buffers, sizes = (operands.a, operands.b), (operands.m, operands.n)
        if variant.is_right:
            buffers, sizes = buffers[::-1], sizes[::-1]
        self.small_buffer, self.large_buffer = buffers
        self.small_size, self.large_size = sizes
        self.partial: Buffer | None = None

    def write(self) -> None:
        """One kernel, or two with a buffer between them."""
        w, o, splits = self.writer, self.operands, self.variant.splits
        groups = w.divide_up(self.small_size, self.variant.small)
        strips = w.divide_up(self.large_size, self.strip)
        # Blocks that follow each other have the same of the large matrix, or are side by side.
        counts = (splits, strips, groups)
        blocks = o.batches
        for count in counts:
            blocks = w.multiply(blocks, count)
        if splits > 1:
            self._make_partial()
        first = _EARLY if self.variant.is_early else ()
        w.launch(blocks, self.threads, self.shared_bytes, partial(self.body, counts), first)
        if self.partial:
            elements = w.multiply(o.batches, w.multiply(o.m, o.n))
            blocks = w.divide_up(elements, _SUMMING_THREADS)
            w.launch(blocks, _SUMMING_THREADS, 0, partial(self._add_splits, elements))
            w.line(f"memref.dealloc {self.partial.name} : {self.partial.type}")
        w.line("return")

    def body(self, counts: tuple[Index, Index, Index]) -> None:
        w = self.writer
        self.batch, self.split, strip, group = w.unravel("%block", *counts)
        self.first_small = w.multiply(group, self.variant.small)
        self.first_large = w.multiply(strip, self.strip)
        self.warp, self.lane = w.unravel("%thread", WARP)
        sums = self._of_rows() if self.large.is_along else self._of_columns()
        self._share(*self._add_lanes(sums))
        w.barrier()
        self._store()

    # --- Sums of a thread ---------------------------------------------------------------------

    def _of_rows(self) -> list[str]:
        """Of a large matrix whose rows lie along k: a thread's accesses lie in several rows."""
        w, variant = self.writer, self.variant
        group, along = w.unravel(self.warp, self.warps_along)
        self.along = along
        self.column = w.multiply(group, variant.rows)
        last = w.subtract(self.large_size, 1)
        first = w.add(self.first_large, self.column)
        # Behind the last row, the last one once more; its sums are dropped.
        rows = [w.minimum(w.add(first, i), last) for i in range(variant.rows)]
        slice_ = w.add(w.multiply(along, WARP), self.lane)

        def load(k: Index, width: int) -> list[list[str]]:
            return [self._large(row, k, width) for row in rows]

        def multiply(k: Index, loaded: list[list[str]], sums: list[str]) -> list[str]:
            for i, number, factor in self._factors(k, len(loaded[0])):
                for j, values in enumerate(loaded):
                    place = i * variant.rows + j
                    sums[place] = w.multiply_add(factor, values[number], sums[place], self.type)
            return sums

        return self._along_k(slice_, self.width, variant.depth, load, multiply)

    def _of_columns(self) -> list[str]:
        """Of one whose rows do not: a thread's accesses have the same columns of several rows."""
        w, extent = self.writer, self.large.extent
        lane_along, lane = w.unravel(self.lane, self.variant.lanes)
        self.along = self.warp
        self.column = w.multiply(lane, self.width)
        slice_ = w.add(w.multiply(self.warp, self.lanes_along), lane_along)
        column = w.add(self.first_large, self.column)
        if self.width == 1 or (extent is not None and extent % self.width == 0):
            # A strip may end behind the last column: there, the last access once more.
            last = w.subtract(self.large_size, self.width)
            return self._of_whole_columns(slice_, w.minimum(column, last))
        return w.choose(
            w.less(w.add(column, self.width - 1), self.large_size),
            [self.type] * self.sums,
            partial(self._of_whole_columns, slice_, column),
            partial(self._of_some_columns, slice_, column),
        )

    def _of_whole_columns(self, slice_: Index, column: Index) -> list[str]:
        def load(k: Index, count: int) -> list[list[str]]:
            return [self._large(column, self.writer.add(k, i), self.width) for i in range(count)]

        return self._along_k(slice_, self.variant.depth, 1, load, self._multiply_columns)

    def _of_some_columns(self, slice_: Index, column: Index) -> list[str]:
        """Element by element; behind the last column, that one once more."""
        w = self.writer
        last = w.subtract(self.large_size, 1)
        columns = [w.minimum(w.add(column, i), last) for i in range(self.width)]

        def load(k: Index, count: int) -> list[list[str]]:
            rows = [w.add(k, i) for i in range(count)]
            return [[self._large(at, row, 1)[0] for at in columns] for row in rows]

        return self._along_k(slice_, 1, 1, load, self._multiply_columns)

    def _multiply_columns(self, k: Index, loaded: list[list[str]], sums: list[str]) -> list[str]:
        w = self.writer
        for i, number, factor in self._factors(k, len(loaded)):
            for j, value in enumerate(loaded[number]):
                place = i * self.width + j
                sums[place] = w.multiply_add(factor, value, sums[place], self.type)
        return sums

    def _along_k(
        self, slice_: Index, chunk: int, at_once: int, load: _Load, multiply: _Multiply
    ) -> list[str]:
        """The sums over one slice of k: of chunks that follow each other, each slice has one after
        the other, of which `at_once` are loaded before the first is used."""
        w, type_ = self.writer, self.type
        slices = self.lanes_along * self.warps_along
        begin, end = self._depths(chunk)
        stride = slices * chunk
        types = [type_] * self.sums

        def turn(count: int, width: int, k: str, sums: list[str]) -> list[str]:
            depths = [w.add(k, number * stride) for number in range(count)]
            loaded = [load(depth, width) for depth in depths]
            for depth, values in zip(depths, loaded, strict=True):
                sums = multiply(depth, values, sums)
            return sums

        sums = [w.zero(type_)] * self.sums
        k = w.add(begin, w.multiply(slice_, chunk))
        if at_once > 1:
            stop = w.subtract(end, stride * (at_once - 1) + chunk - 1)
            step = stride * at_once
            sums = w.loop(k, stop, step, sums, types, partial(turn, at_once, chunk))
            turns = w.divide_up(w.maximum(w.subtract(stop, k), 0), step)
            k = w.add(k, w.multiply(turns, step))
        stop = w.subtract(end, chunk - 1)
        sums = w.loop(k, stop, stride, sums, types, partial(turn, 1, chunk))
        if chunk > 1 and not (self.problem.k is not None and self.problem.k % chunk == 0):
            # What is no whole chunk, element by element.
            rest = w.remainder(w.subtract(end, begin), chunk)
            k = w.add(w.subtract(end, rest), slice_)
            sums = w.loop(k, end, slices, sums, types, partial(turn, 1, 1))
        return sums

    def _depths(self, chunk: int) -> tuple[Index, Index]:
        """Where k begins and ends for this block: at whole chunks, but for the end of the last."""
        w, k, splits = self.writer, self.operands.k, self.variant.splits
        if splits == 1:
            return 0, k
        part = w.multiply(w.divide_up(w.divide_up(k, splits), chunk), chunk)
        begin = w.minimum(w.multiply(self.split, part), k)
        return begin, w.minimum(w.add(begin, part), k)

    def _large(self, number: Index, k: Index, count: int) -> list[str]:
        """Elements of row (or from column) `number` at k, as sums are."""
        w = self.writer
        at = (number, k) if self.large.is_along else (k, number)
        values = w.load(self.large_buffer, self.operands.at(self.batch, *at), count)
        return converted(w, values, self.large.matrix.element, self.type)

    def _factors(self, k: Index, count: int) -> Iterator[tuple[int, int, str]]:
        """This block's elements of the small matrix, from k on: each with its row's number and how
        far behind k it is. Behind the last row, the last one once more; its sums are dropped."""
        w, side, few = self.writer, self.small, self.variant.small
        element = side.matrix.element
        widest = max(1, gcd(_WIDEST_ACCESS, side.matrix.alignment) // ELEMENT_BYTES[element])
        is_whole = side.extent is not None and side.extent % few == 0
        rows = [w.add(self.first_small, i) for i in range(few)]
        if not is_whole:
            last = w.subtract(self.small_size, 1)
            rows = [w.minimum(row, last) for row in rows]
        if side.is_along:
            width = gcd(count, widest)
            places = [(i, j) for i in range(few) for j in range(0, count, width)]
        else:
            width = gcd(few, widest) if is_whole else 1
            places = [(i, j) for j in range(count) for i in range(0, few, width)]
        for i, j in places:
            at = (rows[i], w.add(k, j)) if side.is_along else (w.add(k, j), rows[i])
            values = w.load(self.small_buffer, self.operands.at(self.batch, *at), width)
            for number, value in enumerate(converted(w, values, element, self.type)):
                yield (i, j + number, value) if side.is_along else (i + number, j, value)

    # --- Sums of a warp, a block, all blocks --------------------------------------------------

    def _add_lanes(self, sums: Sequence[str]) -> tuple[list[str], Index, str | None]:
        """Adds what the lanes have that divide k. Each two lanes share the work where there are
        sums to share: one goes on with the first half of them, the other with the second.

        Returns a lane's sums, the number of the first, and whether the lane is to write them (None:
        each is).
        """
        w = self.writer
        values, first = list(sums), w.index(0)
        writes: str | None = None
        offset = WARP // 2
        while offset >= WARP // self.lanes_along:
            bit = w.remainder(w.divide(self.lane, offset), 2)
            is_lower = w.equal(bit, 0)
            if len(values) % 2 == 0:
                half = len(values) // 2
                pairs = list(zip(values[:half], values[half:], strict=True))
                kept = [self._pick(is_lower, *pair) for pair in pairs]
                given = [self._pick(is_lower, *pair[::-1]) for pair in pairs]
                first = w.index(w.add(first, w.multiply(bit, half)))
            else:
                kept = given = values
                writes = w.both(writes, is_lower)
            values = [
                w.sum(value, w.shuffle(other, offset, self.type), self.type)
                for value, other in zip(kept, given, strict=True)
            ]
            offset //= 2
        return values, first, writes

    def _pick(self, condition: str, yes: str, no: str) -> str:
        return self.writer.value(f"arith.select {condition}, {yes}, {no} : {self.type}")

    def _share(self, values: Sequence[str], first: Index, writes: str | None) -> None:
        """Writes a warp's sums to shared memory."""
        w = self.writer
        self.block_sums = w.shared(0, self.shared, self.type)

        def write() -> None:
            for number, value in enumerate(values):
                i, j = w.unravel(w.add(first, number), self.per_thread)
                w.store(self.block_sums, [self.along, i, w.add(self.column, j)], [value])

        w.where(writes, write)

    def _store(self) -> None:
        """Adds the sums of warps, one after the other; each thread stores some of the results."""
        w, outputs = self.writer, self.variant.small * self.strip
        for first in range(0, outputs, self.threads):
            number = w.add("%thread", first)
            is_there = None
            if first + self.threads > outputs:
                is_there = w.less(number, outputs)
            w.where(is_there, partial(self._store_one, number))

    def _store_one(self, number: Index) -> None:
        w = self.writer
        i, j = w.unravel(number, self.strip)
        at = w.add(self.first_small, i), w.add(self.first_large, j)
        is_there = w.both(w.less(at[0], self.small_size), w.less(at[1], self.large_size))

        def store() -> None:
            [total] = w.load(self.block_sums, [0, i, j])
            for warp in range(1, self.warps_along):
                [other] = w.load(self.block_sums, [warp, i, j])
                total = w.sum(total, other, self.type)
            row, column = at[::-1] if self.variant.is_right else at
            if self.partial:
                o = self.operands
                place = w.add(w.multiply(self.batch, self.variant.splits), self.split)
                place = w.add(w.multiply(w.add(w.multiply(place, o.m), row), o.n), column)
                w.store(self.partial, [place], [total])
            else:
                self._store_result((self.batch, row, column), total)

        w.where(is_there, store)

    def _store_result(self, at: tuple[Index, Index, Index], total: str) -> None:
        w, o = self.writer, self.operands
        w.store(o.c, o.at(*at), finished(w, o, self.finish, [total], at))

    def _make_partial(self) -> None:
        """The buffer of the sums of blocks: for each batch and split, a matrix like C."""
        w, o = self.writer, self.operands
        count = w.multiply(w.multiply(o.batches, self.variant.splits), w.multiply(o.m, o.n))
        type_ = f"memref<?x{self.type}>"
        name = w.value(f"memref.alloc({w.index(count)}) : {type_}")
        self.partial = Buffer(name, type_, self.type)

    def _add_splits(self, elements: Index) -> None:
        """The second kernel: a thread for each element of C."""
        w, o, splits, sums = self.writer, self.operands, self.variant.splits, self.partial
        assert sums
        number = w.add(w.multiply("%block", _SUMMING_THREADS), "%thread")

        def add() -> None:
            batch, place = w.unravel(number, w.multiply(o.m, o.n))
            first = w.multiply(batch, splits)
            places = [
                w.add(w.multiply(w.add(first, i), w.multiply(o.m, o.n)), place)
                for i in range(splits)
            ]
            values = [value for at in places for value in w.load(sums, [at])]
            total = values[0]
            for value in values[1:]:
                total = w.sum(total, value, self.type)
            row, column = w.unravel(place, o.n)
            self._store_result((batch, row, column), total)

        w.where(w.less(number, elements), add)


class Gemv(MatmulFamily):
    """See the module's docstring."""

    name = "one pass over the large matrix"
    target = ANY_GPU
    variant_type = Variant
    has_cost_model = False
    is_bandwidth_bound = True

    def can_take(self, problem: Problem, variant: Variant) -> bool:
        if not has_known_types(problem):
            return False
        _, large = _sides(problem, variant.is_right)
        width = variant.load_bytes // ELEMENT_BYTES[large.matrix.element]
        kernel = _Shape(problem, variant)
        return (
            1 <= variant.warps <= 32
            and 0 < variant.load_bytes <= min(_WIDEST_ACCESS, large.matrix.alignment)
            and width > 0
            and large.matrix.alignment % variant.load_bytes == 0
            and variant.lanes in (1, 2, 4, 8, 16, 32)
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
        few = min(known)
        if few > 16:
            return ()
        few = max(few, 1)
        _, large = _sides(problem, is_right)
        element_bytes = ELEMENT_BYTES[large.matrix.element]
        widest = gcd(_WIDEST_ACCESS, large.matrix.alignment)
        if large.is_along:
            shapes = (
                *_shapes_along(problem, few, widest // element_bytes),
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
                Variant(few, warps, widest, depth, rows, along, is_right=is_right)
                for warps, along, rows, depth in shapes
            ]
        else:
            # Narrower accesses, of more lanes, where a thread would have too many sums.
            if few == 1 and element_bytes == 1:
                widest = min(widest, _WIDEST_OF_BYTES)
            while widest > element_bytes and few * widest // element_bytes > _MANY_SUMS:
                widest //= 2
            found = [
                Variant(
                    *(few, warps, widest, depth),
                    lanes=min(WARP, lanes * _WIDEST_ACCESS // widest),
                    splits=splits,
                    is_right=is_right,
                )
                for warps, lanes, depth, splits in (
                    *_shapes_across(large, few, widest // element_bytes),
                    *((16, 4, 8, 1), (16, 4, 4, 1), (16, 8, 8, 1), (16, 8, 4, 1), (16, 4, 16, 1)),
                    *((8, 8, 8, 4), (8, 16, 4, 8), (8, 4, 4, 1), (16, 2, 8, 1), (8, 8, 4, 1)),
                )
            ]
        able = (variant for variant in found if self.can_take(problem, variant))
        return tuple(dict.fromkeys(able))

    def shared_bytes(self, problem: Problem, variant: Variant) -> int:
        return _Shape(problem, variant).shared_bytes

    def function(
        self, problem: Problem, variant: Variant, name: str, finish: Finish | None = None
    ) -> str:
        writer = Writer()
        operands = Operands(writer, problem)
        _Kernel(problem, variant, writer, operands, finish).write()
        return f"func.func @{name}({problem.signature}) {{\n{writer.text()}\n}}\n"


GEMV = Gemv()
