"""Splits few reductions of many elements into parts, whose partial results are reduced in a second
kernel.

One thread for each of 1,000 columns, or one block for each of 8 rows, leaves most of a GPU idle.
The number of parts only depends on the shape, and so does the order of the sum. Columns of unknown
length have as many parts as long ones, and the host chooses whether to split them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc import ops
from aotc.analysis.effects import Overlaps, accesses_in, is_pure, is_understood
from aotc.builder.numbers import (
    Number,
    Scalar,
    ceil_divide,
    compare,
    minimum,
    signed_maximum,
    unravel,
)
from aotc.chips import LARGE_GPU_THREADS, MAX_BLOCK_THREADS
from aotc.lower.gpu_branches import is_for_gpu
from aotc.lower.mapping.build import copy_in_place_of, create_loop
from aotc.lower.mapping.columns import Columns
from aotc.lower.mapping.nest import known_product, loop_trips
from aotc.lower.mapping.rows import is_along_rows, row_items
from aotc.mlir import ir
from aotc.rewrites.capability import declare_capability, has_gpu
from aotc.rewrites.cloning import body_of, copy

# The smallest number of elements to split: fewer take less time than another kernel.
_LEAST_ELEMENTS = 1 << 18
# The shortest row and column to split. On an H100, 16 sums of 65,536 take 3.7 us unsplit and 4.1 us
# split; 8 softmaxes of 131,072 take 32 us and 13 us.
_LEAST_ROW, _LEAST_COLUMN = 1 << 17, 1 << 9
# The same for rows of several dimensions, such as those of a group norm. A block has few loads of
# them in flight: 24 such norms took 1.4 ms of a PoolFormer-S12's 2.1 on an H200.
_LEAST_NEST_ELEMENTS, _LEAST_NEST = 1 << 17, 1 << 14
# The smallest number of elements of a part: of a row, which a block reduces, and of a column, which
# a thread reduces.
_ROW_PART, _COLUMN_PART = 8 * MAX_BLOCK_THREADS, 32
# The shortest column of unknown length to split, which the host compares: on an H200, a batch norm
# of 33 rows of 256 takes 6 us unsplit and 22 us split, and one of 1,000 rows 72 us and 24 us.
_LEAST_UNKNOWN = 1 << 8
# The smallest and the largest number of parts of unknown length. Up to so many partial results of a
# column are combined by one thread; more are adjacent, and reduced as a row.
_LEAST_PARTS, _MOST_PARTS, _MOST_SEQUENTIAL = 4, 1 << 11, 1 << 8
# The largest number of parts of an unknown number of rows or columns.
_MOST_OF_UNKNOWN = 1 << 9


class _Parts(Struct, frozen=True):
    """How the loops along the rows of an scf.parallel are divided.

    `rows`: the sizes of the scf.parallel. `divisions`: the number of parts along each of the first
    dimensions of a row, of about the same size; empty before it is computed. (Sizes that are not
    known are values, and if there is one among `rows`, so are the divisions.) `has_adjacent`:
    the partial results of a row are adjacent; otherwise those of a part are. `is_for_gpus`: the CPU
    device keeps the loops. `least`: if the number of a row's elements is not known, GPUs keep the
    loops for fewer than these.
    """

    rows: tuple[Any, ...]
    divisions: tuple[Number, ...]
    along_rows: bool
    has_adjacent: bool
    is_for_gpus: bool
    least: int | None = None

    @property
    def count(self) -> Number:
        """The number of parts. It may be computed at the insertion point."""
        return math.prod(self.divisions)

    @property
    def has_known_count(self) -> bool:
        return all(isinstance(parts, int) for parts in self.divisions) and bool(self.divisions)

    @property
    def _threads(self) -> int:
        """The threads that reduce a part."""
        return MAX_BLOCK_THREADS if self.along_rows else 1

    def with_count(self, columns: Columns) -> _Parts:
        """With as many parts as fill a large GPU, which are computed at the insertion point. The
        first dimensions are divided into single elements, if they are few."""
        if self.divisions:
            return self
        points = signed_maximum(math.prod(map(_number, self.rows)), 1)
        left = minimum(LARGE_GPU_THREADS // self._threads // points, _MOST_OF_UNKNOWN)
        divisions = []
        for size in map(_number, _sizes_of(columns)):
            parts = signed_maximum(minimum(left, size), 1)
            divisions.append(parts)
            left = left // parts
        return replace(self, divisions=tuple(divisions))

    def is_worth(self, columns: Columns) -> Any:
        """Whether GPUs split the rows, as an i1 at the insertion point."""
        is_long = compare("sge", math.prod(map(_number, _sizes_of(columns))), self.least or 0)
        if self.divisions:
            return is_long
        most = LARGE_GPU_THREADS // self._threads // _LEAST_PARTS
        return is_long & compare("sle", math.prod(map(_number, self.rows)), most)

    def sizes(self, columns: Columns) -> list[Number]:
        """The size of a part along each divided dimension, at the insertion point."""
        return [
            ceil_divide(_number(size), parts)
            for size, parts in zip(_sizes_of(columns), self.divisions, strict=False)
        ]

    def bounds(self, columns: Columns, part: Any, sizes: Sequence[Any]) -> list[tuple[Any, Any]]:
        """The bounds of the loops along the row for a part, at the insertion point."""
        found: list[tuple[Any, Any]] = [(0, end) for end in _sizes_of(columns)]
        numbers = unravel(_number(part), *self.divisions[1:])
        for at, (number, size) in enumerate(zip(numbers, sizes, strict=True)):
            if self.divisions[at] != 1:
                found[at] = bounds_of_part(_index(number), size, found[at][1])
        return found

    def place(self, part: Any, row: Sequence[Any]) -> list[Any]:
        return place_of_part(part, row, along_rows=self.has_adjacent)


def split_reductions(loop: Any, overlaps: Overlaps, *, cpu_kernels: bool) -> str | None:
    """Inserts loops over parts of the loops along the rows of an scf.parallel before it, if one of
    them is a reduction. With `cpu_kernels`, rows of several dimensions or of unknown length
    are split on GPUs alone.

    Returns a description; None if nothing was changed.
    """
    found = _parts_of(loop, overlaps)
    if found is None:
        return None
    is_for_all = is_for_gpu(loop) is None and cpu_kernels
    columns = _divisible(loop, overlaps)[0]
    if found.is_for_gpus:
        is_for_cpus = is_for_gpu(loop) is False and cpu_kernels
        if is_for_cpus or computed_from(columns.loop, overlaps) is None:
            return None
        if is_for_all:
            declare_capability(ops.enclosing(loop, "builtin.module"))
            loop = copy_in_place_of(loop, has_gpu)
        if found.least is not None:
            loop = copy_in_place_of(loop, functools.partial(found.is_worth, columns))
        overlaps.renew()
    how_many = 0
    with loop.location:
        # If a loop cannot be split, the loops after it are not split either.
        while left := _divisible(loop, overlaps):
            columns, is_last = left[0], len(left) == 1
            before = computed_from(columns.loop, overlaps)
            if before is None:
                break
            how_many += 1
            if not columns.accumulators:
                _split_elementwise(loop, columns, before, found)
                continue
            _split_reduction(loop, columns, before, found, is_last=is_last)
            if is_last:
                break
    if how_many and not any(_stores(operation) for operation in body_of(loop)):
        ops.erase(loop)
    where = ", on GPUs" if found.is_for_gpus and is_for_all else ""
    where += "" if found.least is None else f", if there are {found.least} elements"
    count = f"{found.count} parts" if found.has_known_count else "as many parts as fill a GPU"
    what = f"{how_many} loops along rows become kernels, with reductions in {count}"
    return what + where if how_many else None


def _number(size: Any) -> Number:
    return size if isinstance(size, int) else Scalar(size)


def _parts_of(loop: Any, overlaps: Overlaps) -> _Parts | None:
    trips = loop_trips(loop)
    points = known_product(trips)
    lowers, uppers, steps, inits = ops.operand_groups(loop)
    starts_at_0 = all(map(_is(0), lowers)) and all(map(_is(1), steps))
    items = row_items(loop, overlaps) if starts_at_0 and not inits else None
    if items is None:
        return None
    along = [item for item in items if not isinstance(item, ir.Operation | ir.OpView)]
    reductions = [item for item in along if isinstance(item, Columns) and item.accumulators]
    if not reductions or not all(_is_divisible(item, loop) for item in along):
        return None
    rows = tuple(upper if trip is None else trip for upper, trip in zip(uppers, trips, strict=True))
    along_rows = any(is_along_rows(item, loop) for item in along)
    has_nest = along_rows and any(len(item.bounds) > 1 for item in along)
    if None in {item.known_count for item in reductions}:
        forms = {_divisions(points, _sizes_of(item), along_rows=along_rows) for item in reductions}
        divisions = forms.pop()
        # Rows of one dimension are rarely so long: kernels for several loops are not worth it.
        are_rare = along_rows and not has_nest and len(along) > 1
        if divisions is None or forms or are_rare or (has_nest and not along_rows):
            return None
        parts = math.prod(divisions) if divisions else 0
        has_adjacent = along_rows or parts > _MOST_SEQUENTIAL
        least = _LEAST_NEST if has_nest else _LEAST_ROW if along_rows else _LEAST_UNKNOWN
        return _Parts(rows, divisions, along_rows, has_adjacent, True, least)
    count, *others = {item.known_count for item in reductions}
    if others or points is None or count is None or any(i.known_count is None for i in along):
        return None
    size = size_of_part(points, count, along_rows=along_rows, has_nest=has_nest)
    if size is None:
        return None
    most = min(_sizes_of(item)[0] for item in reductions)
    parts = min(-(-count // size), most)
    return None if parts < 2 else _Parts(rows, (parts,), along_rows, along_rows, has_nest)


def _is_divisible(item: Any, loop: Any) -> bool:
    """Whether it is a nest of loops from 0 by 1 whose sizes are known in front of `loop`."""
    return isinstance(item, Columns) and all(
        (lower, step) == (0, 1) and (isinstance(size, int) or ops.is_made_outside(size, loop))
        for lower, size, step in item.normal_bounds
    )


def _sizes_of(columns: Columns) -> list[Any]:
    """The sizes of the nest: integers, or values where they are not known."""
    return [upper for _, upper, _ in columns.normal_bounds]


def _divisions(
    points: int | None, sizes: Sequence[Any], *, along_rows: bool
) -> tuple[int, ...] | None:
    """The number of parts along each dimension of rows or columns of unknown length: known
    dimensions are divided first, whose parts are never empty. Empty for an unknown number of rows
    or columns, for which the program computes it; None if they are not divided."""
    if points is None:
        return ()
    threads, least = (MAX_BLOCK_THREADS, _ROW_PART) if along_rows else (1, _COLUMN_PART)
    wanted = min(_MOST_PARTS, LARGE_GPU_THREADS // max(1, points * threads))
    if points == 0 or wanted < _LEAST_PARTS:
        return None
    divisions = [1] * len(sizes)
    for at, size in enumerate(sizes):
        if isinstance(size, int):
            divisions[at] = max(1, min(wanted, size // least))
            wanted //= divisions[at]
    unknown = [at for at, size in enumerate(sizes) if not isinstance(size, int)]
    if not unknown:
        return None
    divisions[unknown[0]] = wanted
    return tuple(divisions)


def _divisible(loop: Any, overlaps: Overlaps) -> list[Columns]:
    """The loops along the row, in order."""
    items = row_items(loop, overlaps) or []
    return [item for item in items if isinstance(item, Columns) and _is_divisible(item, loop)]


def _stores(operation: Any) -> bool:
    return not is_pure(operation) and not is_understood(operation, may_store=False)


def size_of_part(
    points: int, count: int, *, along_rows: bool, has_nest: bool = False
) -> int | None:
    """The number of elements of a part, for `points` reductions of `count` elements each; None if
    they are not split.

    `along_rows`: a block reduces a part; otherwise a thread does. `has_nest`: the rows have several
    dimensions.
    """
    shortest = _LEAST_ROW if along_rows else _LEAST_COLUMN
    least_elements = _LEAST_ELEMENTS
    if has_nest:
        shortest, least_elements = _LEAST_NEST, _LEAST_NEST_ELEMENTS
    if points == 0 or points * count < least_elements or count < shortest:
        return None
    threads, least = (MAX_BLOCK_THREADS, _ROW_PART) if along_rows else (1, _COLUMN_PART)
    wanted = LARGE_GPU_THREADS // (points * threads)
    # The elements of a part, and then the parts, are processed sequentially.
    parts = min(wanted, count // least, max(2, math.isqrt(count)))
    return None if parts < 2 else -(-count // parts)


def are_few_long_columns(points: int, count: int | None) -> bool:
    """Whether columns are split, whose length is not known if `count` is None."""
    if count is None:
        return _divisions(points, [None], along_rows=False) is not None
    return size_of_part(points, count, along_rows=False) is not None


def _is(number: int) -> Any:
    return lambda value: ops.known_index(value) == number


def computed_from(loop: Any, overlaps: Overlaps) -> tuple[Any, ...] | None:
    """The operations before a loop in a row on which the loop depends, in order.

    None if the loop cannot be moved before the row's other operations because one of them stores to
    accessed memory.
    """
    row = body_of(loop.parent)
    in_front = row[: row.index(loop)]
    made, before = [loop], []
    wanted = _operands(loop)
    for operation in reversed(in_front):
        if wanted & set(operation.results):
            if not is_pure(operation) and not is_understood(operation, may_store=False):
                return None
            before.append(operation)
            made.append(operation)
            wanted |= _operands(operation)
    accessed = [access for operation in made for access in accesses_in(operation)]
    if any(overlaps.is_written(access.memref, in_front) for access in accessed):
        return None
    written = [access.memref for access in accessed if access.writes]
    read = [access.memref for operation in in_front for access in accesses_in(operation)]
    if any(overlaps.may_overlap(one, other) for one in written for other in read):
        return None
    return tuple(before[::-1])


def _operands(operation: Any) -> set[Any]:
    return {operand for inner in ops.walk(operation) for operand in inner.operands}


class Results:
    """One buffer of the same sizes for each of the result types."""

    def __init__(self, types: Sequence[Any], sizes: Sequence[Any]) -> None:
        """Allocates the buffers at the insertion point. Sizes are integers or values."""
        unknown = [size for size in sizes if not isinstance(size, int)]
        dynamic = ir.ShapedType.get_dynamic_size()
        shape = [size if isinstance(size, int) else dynamic for size in sizes]
        self._buffers = [ops.alloc(ir.MemRefType.get(shape, type_), unknown) for type_ in types]

    def store(self, results: Sequence[Any], place: Sequence[Any]) -> None:
        """Stores one element into each buffer at the indices `place`."""
        for result, buffer in zip(results, self._buffers, strict=True):
            ops.create("memref.store", [result, buffer, *place])

    def load(self, place: Sequence[Any]) -> list[Any]:
        """Loads the element at the indices `place` from each buffer."""
        return [ops.load(buffer, place) for buffer in self._buffers]

    def free(self) -> None:
        """Frees the buffers at the insertion point."""
        for buffer in self._buffers:
            ops.create("memref.dealloc", [buffer])


def place_of_part(part: Any, row: Sequence[Any], *, along_rows: bool) -> list[Any]:
    """The indices of a partial result. Those of one row are adjacent if blocks reduce along rows;
    otherwise those of one part are."""
    return [*row, part] if along_rows else [part, *row]


def bounds_of_part(number: Any, size: Any, count: Any) -> tuple[Any, Any]:
    """The first element of the part with this number, and the end after its last. `size` and
    `count` are integers or values."""
    lower = ops.index_op("arith.muli", number, _index(size))
    upper = ops.index_op("arith.addi", lower, _index(size))
    return lower, ops.index_op("arith.minsi", upper, _index(count))


def _index(number: Any) -> Any:
    return ops.constant_index(number) if isinstance(number, int) else number


def _split_reduction(
    loop: Any, columns: Columns, before: Sequence[Any], found: _Parts, *, is_last: bool
) -> None:
    """Creates a kernel for the partial results. The row combines them if no loop follows; otherwise
    another kernel does, whose results the row loads."""
    types = [accumulator.type for accumulator in columns.accumulators]
    old_row = list(loop.regions[0].blocks[0].arguments)

    def start(row: Sequence[Any]) -> dict[Any, Any]:
        values = dict(zip(old_row, row, strict=True))
        for operation in before:
            copy(operation, values)
        return values

    def part(place: list[Any]) -> None:
        number, *row = place
        values = start(row)
        neutral = [accumulator.neutral() for accumulator in columns.accumulators]

        def element(variables: list[Any]) -> list[Any]:
            _copy_body(columns, variables, values)
            return [values.get(a.value, a.value) for a in columns.accumulators]

        bounds = found.bounds(columns, number, sizes)
        partial.store(_reduce(columns, bounds, neutral, element), found.place(number, row))

    def combine(row: Sequence[Any], values: dict[Any, Any]) -> Sequence[Any]:
        inits = [values.get(a.init, a.init) for a in columns.accumulators]
        return _reduce(columns, [(0, count)], inits, lambda n: partial.load(found.place(n[0], row)))

    with ir.InsertionPoint(loop):
        found = found.with_count(columns)
        sizes, count = found.sizes(columns), found.count
        partial = Results(types, found.place(count, found.rows))
        rows = [_index(size) for size in found.rows]
        ops.create_parallel([_index(count), *rows], part)
    if is_last:
        with ir.InsertionPoint(columns.loop):
            results = combine(old_row, {})
        with ir.InsertionPoint.after(loop):
            partial.free()
    else:
        with ir.InsertionPoint(loop):
            totals = Results(types, found.rows)
            ops.create_parallel(rows, lambda row: totals.store(combine(row, start(row)), row))
            partial.free()
        with ir.InsertionPoint(columns.loop):
            results = totals.load(old_row)
        with ir.InsertionPoint.after(loop):
            totals.free()
    ops.replace(columns.loop, results)


def _split_elementwise(loop: Any, columns: Columns, before: Sequence[Any], found: _Parts) -> None:
    """Creates a kernel with a point for each element of all rows."""

    sizes, of_row = _sizes_of(columns), len(found.rows)

    def point(row: Sequence[Any], variables: Sequence[Any]) -> None:
        values = dict(zip(loop.regions[0].blocks[0].arguments, row, strict=True))
        for operation in before:
            copy(operation, values)
        _copy_body(columns, variables, values)

    with ir.InsertionPoint(loop):
        if found.along_rows:
            order = [_index(size) for size in (*found.rows, *sizes)]
            ops.create_parallel(order, lambda place: point(place[:of_row], place[of_row:]))
        else:
            order = [_index(size) for size in (*sizes, *found.rows)]
            ops.create_parallel(order, lambda place: point(place[-of_row:], place[:-of_row]))
    ops.erase(columns.loop)


def _copy_body(columns: Columns, variables: Sequence[Any], values: dict[Any, Any]) -> None:
    values.update(zip(columns.variables, variables, strict=True))
    for operation in columns.body:
        copy(operation, values)


def _reduce(
    columns: Columns,
    bounds: Sequence[tuple[Any, Any]],
    inits: Sequence[Any],
    element: Callable[[list[Any]], Sequence[Any]],
) -> Sequence[Any]:
    """The results of a nest of loops with the reductions of `columns`, over the values that
    `element` returns for its variables. `bounds`: the first and the end of each loop."""
    # All in front of the nest, whose bounds must not seem to depend on its outer loops.
    limits = [[_index(one) for one in (*pair, 1)] for pair in bounds]

    def nest(inits: Sequence[Any], outer: Sequence[Any]) -> Sequence[Any]:
        if len(outer) == len(limits):
            return [
                accumulator.combine(old, new)
                for accumulator, old, new in zip(
                    columns.accumulators, inits, element(list(outer)), strict=True
                )
            ]

        def body(variable: Any, carried: list[Any]) -> list[Any]:
            return list(nest(carried, (*outer, variable)))

        first, end, step = limits[len(outer)]
        return create_loop(first, end, step, inits, body)

    return nest(inits, ())
