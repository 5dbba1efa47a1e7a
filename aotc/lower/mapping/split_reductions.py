"""Splits few reductions of many elements into parts, whose partial results are reduced in a second
kernel.

One thread for each of 1,000 columns, or one block for each of 8 rows, leaves most of a GPU idle.
The number of parts only depends on the shape, and so does the order of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.effects import Overlaps, accesses_in, is_pure, is_understood
from aotc.chips import LARGE_GPU_THREADS, MAX_BLOCK_THREADS
from aotc.lower.mapping.columns import Columns
from aotc.lower.mapping.nest import known_product, loop_trips
from aotc.lower.mapping.rows import is_along_rows, row_items
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of, copy

# The smallest number of elements to split: fewer take less time than another kernel.
_LEAST_ELEMENTS = 1 << 18
# The shortest row and column to split. On an H100, 16 sums of 65,536 take 3.7 us unsplit and 4.1 us
# split; 8 softmaxes of 131,072 take 32 us and 13 us.
_LEAST_ROW, _LEAST_COLUMN = 1 << 17, 1 << 9
# The smallest number of elements of a part: of a row, which a block reduces, and of a column, which
# a thread reduces.
_ROW_PART, _COLUMN_PART = 8 * MAX_BLOCK_THREADS, 32


class _Parts(Struct, frozen=True):
    """How the loops along the rows of an scf.parallel are divided.

    Rows of `count` elements have parts of `size` elements; the last part may be smaller. `rows`:
    the sizes of the scf.parallel.
    """

    rows: tuple[int, ...]
    count: int
    size: int
    along_rows: bool

    @property
    def parts(self) -> int:
        return -(-self.count // self.size)

    def place(self, part: Any, row: Sequence[Any]) -> list[Any]:
        return place_of_part(part, row, along_rows=self.along_rows)


def split_reductions(loop: Any, overlaps: Overlaps) -> str | None:
    """Inserts loops over parts of the loops along the rows of an scf.parallel before it, if one of
    them is a reduction.

    Returns a description; None if nothing was changed.
    """
    found = _parts_of(loop, overlaps)
    if found is None:
        return None
    how_many = 0
    with loop.location:
        # If a loop cannot be split, the loops after it are not split either.
        while (columns := _first(loop, overlaps, found)) is not None:
            before = computed_from(columns.loop, overlaps)
            if before is None:
                break
            if columns.accumulators:
                _split_reduction(loop, columns, before, found)
            else:
                _split_elementwise(loop, columns, before, found)
            how_many += 1
    if how_many and not any(_stores(operation) for operation in body_of(loop)):
        ops.erase(loop)
    what = f"{how_many} loops along rows become kernels, with reductions in {found.parts} parts"
    return what if how_many else None


def _parts_of(loop: Any, overlaps: Overlaps) -> _Parts | None:
    trips = loop_trips(loop)
    points = known_product(trips)
    lowers, _, steps, inits = ops.operand_groups(loop)
    starts_at_0 = all(map(_is(0), lowers)) and all(map(_is(1), steps))
    items = None if points is None or inits or not starts_at_0 else row_items(loop, overlaps)
    if points is None or items is None:
        return None
    along = [item for item in items if not isinstance(item, ir.Operation | ir.OpView)]
    if not any(isinstance(item, Columns) and item.accumulators for item in along):
        return None
    counts = {_count_of(item) for item in along}
    count = counts.pop()
    if counts or count is None:
        return None
    along_rows = any(is_along_rows(item, loop) for item in along)
    size = size_of_part(points, count, along_rows=along_rows)
    rows = tuple(trip or 0 for trip in trips)
    return None if size is None else _Parts(rows, count, size, along_rows)


def _count_of(item: Any) -> int | None:
    """The number of elements of a loop along a row that starts at 0 with step 1; None for other
    loops."""
    if not isinstance(item, Columns) or len(item.bounds) != 1:
        return None
    lower, _, step = item.normal_bounds[0]
    return item.known_count if (lower, step) == (0, 1) else None


def _first(loop: Any, overlaps: Overlaps, found: _Parts) -> Columns | None:
    """The first loop along the row that has not been split yet."""
    for item in row_items(loop, overlaps) or []:
        if isinstance(item, Columns) and _count_of(item) == found.count:
            return item
    return None


def _stores(operation: Any) -> bool:
    return not is_pure(operation) and not is_understood(operation, may_store=False)


def size_of_part(points: int, count: int, *, along_rows: bool) -> int | None:
    """The number of elements of a part, for `points` reductions of `count` elements each; None if
    they are not split.

    `along_rows`: a block reduces a part; otherwise a thread does.
    """
    shortest = _LEAST_ROW if along_rows else _LEAST_COLUMN
    if points == 0 or points * count < _LEAST_ELEMENTS or count < shortest:
        return None
    threads, least = (MAX_BLOCK_THREADS, _ROW_PART) if along_rows else (1, _COLUMN_PART)
    wanted = LARGE_GPU_THREADS // (points * threads)
    # The elements of a part, and then the parts, are processed sequentially.
    parts = min(wanted, count // least, max(2, math.isqrt(count)))
    return None if parts < 2 else -(-count // parts)


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

    def __init__(self, types: Sequence[Any], sizes: Sequence[int]) -> None:
        """Allocates the buffers at the insertion point."""
        self._buffers = [ops.alloc(ir.MemRefType.get(list(sizes), type_)) for type_ in types]

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


def bounds_of_part(number: Any, size: int, count: int) -> tuple[Any, Any]:
    """The first element of the part with this number, and the end after its last."""
    lower = ops.index_op("arith.muli", number, ops.constant_index(size))
    upper = ops.index_op("arith.addi", lower, ops.constant_index(size))
    return lower, ops.index_op("arith.minsi", upper, ops.constant_index(count))


def _split_reduction(loop: Any, columns: Columns, before: Sequence[Any], found: _Parts) -> None:
    """Creates a kernel for the partial results, and one for each row's result, which the row
    loads."""
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
        bounds = (*bounds_of_part(number, found.size, found.count), ops.constant_index(1))
        neutral = [accumulator.neutral() for accumulator in columns.accumulators]

        def element(variable: Any) -> list[Any]:
            _copy_body(columns, variable, values)
            return [values.get(a.value, a.value) for a in columns.accumulators]

        partial.store(_reduce(columns, bounds, neutral, element), found.place(number, row))

    def total(row: list[Any]) -> None:
        values = start(row)
        bounds = tuple(map(ops.constant_index, (0, found.parts, 1)))
        inits = [values.get(a.init, a.init) for a in columns.accumulators]
        results = _reduce(columns, bounds, inits, lambda n: partial.load(found.place(n, row)))
        totals.store(results, row)

    with ir.InsertionPoint(loop):
        partial = Results(types, found.place(found.parts, found.rows))
        totals = Results(types, found.rows)
        rows = [ops.constant_index(size) for size in found.rows]
        ops.create_parallel([ops.constant_index(found.parts), *rows], part)
        ops.create_parallel(rows, total)
        partial.free()
    with ir.InsertionPoint(columns.loop):
        loaded = totals.load(old_row)
    ops.replace(columns.loop, loaded)
    with ir.InsertionPoint.after(loop):
        totals.free()


def _split_elementwise(loop: Any, columns: Columns, before: Sequence[Any], found: _Parts) -> None:
    """Creates a kernel with a point for each element of all rows."""

    def point(place: list[Any]) -> None:
        *row, variable = place
        values = dict(zip(loop.regions[0].blocks[0].arguments, row, strict=True))
        for operation in before:
            copy(operation, values)
        _copy_body(columns, variable, values)

    with ir.InsertionPoint(loop):
        sizes = [*found.rows, found.count] if found.along_rows else [found.count, *found.rows]
        order = [ops.constant_index(size) for size in sizes]
        ops.create_parallel(
            order, point if found.along_rows else lambda place: point([*place[1:], place[0]])
        )
    ops.erase(columns.loop)


def _copy_body(columns: Columns, variable: Any, values: dict[Any, Any]) -> None:
    values[columns.variables[0]] = variable
    for operation in columns.body:
        copy(operation, values)


def _reduce(columns: Columns, bounds: Sequence[Any], inits: Sequence[Any], element: Any) -> Any:
    """The results of a loop with the reductions of `columns`, over the values that `element`
    returns for its variable."""
    types = [init.type for init in inits]
    made = ops.create("scf.for", [*bounds, *inits], types, regions=1)
    block = made.regions[0].blocks.append(ops.index(), *types)
    variable, *carried = block.arguments
    with ir.InsertionPoint(block):
        combined = [
            accumulator.combine(old, new)
            for accumulator, old, new in zip(
                columns.accumulators, carried, element(variable), strict=True
            )
        ]
        ops.create("scf.yield", combined)
    return list(made.results)
