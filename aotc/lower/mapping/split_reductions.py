"""Splits few reductions of many elements into parts, whose partial results are reduced in a second
kernel.

One thread for each of 1,000 columns, or one block for each of 8 rows, leaves most of a GPU idle.
The number of parts only depends on the shape, and so does the order of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.effects import Overlaps, accesses_in, is_pure, is_understood
from aotc.chips import LARGE_GPU_THREADS, MAX_BLOCK_THREADS
from aotc.lower.gpu_branches import is_for_gpu
from aotc.lower.mapping.build import create_loop
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


class _Parts(Struct, frozen=True):
    """How the loops along the rows of an scf.parallel are divided.

    The rows of reductions have `parts` parts of about the same size, along their first dimension.
    `rows`: the sizes of the scf.parallel. `has_nest`: a row has several dimensions.
    """

    rows: tuple[int, ...]
    parts: int
    along_rows: bool
    has_nest: bool

    def bounds(self, columns: Columns, number: Any) -> tuple[Any, Any]:
        """The bounds of a part of a loop along the row, at the insertion point."""
        first = _sizes_of(columns)[0]
        return bounds_of_part(number, -(-first // self.parts), first)

    def place(self, part: Any, row: Sequence[Any]) -> list[Any]:
        return place_of_part(part, row, along_rows=self.along_rows)


def split_reductions(loop: Any, overlaps: Overlaps, *, cpu_kernels: bool) -> str | None:
    """Inserts loops over parts of the loops along the rows of an scf.parallel before it, if one of
    them is a reduction. With `cpu_kernels`, rows of several dimensions are split on GPUs alone.

    Returns a description; None if nothing was changed.
    """
    found = _parts_of(loop, overlaps)
    if found is None:
        return None
    is_for_all = is_for_gpu(loop) is None and cpu_kernels
    if found.has_nest and cpu_kernels:
        if is_for_gpu(loop) is False or _movable(loop, overlaps) is None:
            return None
        if is_for_all:
            loop = _copy_for_gpus(loop)
            overlaps.renew()
    how_many = 0
    with loop.location:
        # If a loop cannot be split, the loops after it are not split either.
        while (columns := _first(loop, overlaps)) is not None:
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
    where = ", on GPUs" if found.has_nest and is_for_all else ""
    what = f"{how_many} loops along rows become kernels, with reductions in {found.parts} parts"
    return what + where if how_many else None


def _movable(loop: Any, overlaps: Overlaps) -> tuple[Any, ...] | None:
    """What the first loop along the row depends on, if it can be split; else None."""
    columns = _first(loop, overlaps)
    return None if columns is None else computed_from(columns.loop, overlaps)


def _copy_for_gpus(loop: Any) -> Any:
    """A copy of the loop that GPUs run in place of it."""
    declare_capability(ops.enclosing(loop, "builtin.module"))
    with loop.location, ir.InsertionPoint(loop):
        again = loop.clone().operation
        ops.create_either(
            has_gpu(),
            lambda: ir.InsertionPoint.current.insert(again.detach_from_parent()),
            lambda: ir.InsertionPoint.current.insert(loop.detach_from_parent()),
        )
    return again


def _parts_of(loop: Any, overlaps: Overlaps) -> _Parts | None:
    trips = loop_trips(loop)
    points = known_product(trips)
    lowers, _, steps, inits = ops.operand_groups(loop)
    starts_at_0 = all(map(_is(0), lowers)) and all(map(_is(1), steps))
    items = None if points is None or inits or not starts_at_0 else row_items(loop, overlaps)
    if points is None or items is None:
        return None
    along = [item for item in items if not isinstance(item, ir.Operation | ir.OpView)]
    of_reductions = {
        _count_of(item) for item in along if isinstance(item, Columns) and item.accumulators
    }
    if len(of_reductions) != 1 or any(_count_of(item) is None for item in along):
        return None
    (count,) = of_reductions
    assert count is not None
    along_rows = any(is_along_rows(item, loop) for item in along)
    has_nest = along_rows and any(len(item.bounds) > 1 for item in along)
    size = size_of_part(points, count, along_rows=along_rows, has_nest=has_nest)
    if size is None:
        return None
    most = min(_sizes_of(item)[0] for item in along if item.accumulators)
    parts = min(-(-count // size), most)
    rows = tuple(trip or 0 for trip in trips)
    return None if parts < 2 else _Parts(rows, parts, along_rows, has_nest)


def _count_of(item: Any) -> int | None:
    """The number of elements of a loop along a row, or of a nest of such loops, if each starts at 0
    with step 1; None for other loops."""
    if not isinstance(item, Columns):
        return None
    starts_at_0 = all((lower, step) == (0, 1) for lower, _, step in item.normal_bounds)
    return item.known_count if starts_at_0 else None


def _sizes_of(columns: Columns) -> list[int]:
    """The sizes of the nest, which are known."""
    return [upper for _, upper, _ in columns.normal_bounds]


def _first(loop: Any, overlaps: Overlaps) -> Columns | None:
    """The first loop along the row that has not been split yet."""
    for item in row_items(loop, overlaps) or []:
        if isinstance(item, Columns) and _count_of(item) is not None:
            return item
    return None


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
        inner = [(0, size) for size in _sizes_of(columns)[1:]]
        neutral = [accumulator.neutral() for accumulator in columns.accumulators]

        def element(variables: list[Any]) -> list[Any]:
            _copy_body(columns, variables, values)
            return [values.get(a.value, a.value) for a in columns.accumulators]

        bounds = [found.bounds(columns, number), *inner]
        partial.store(_reduce(columns, bounds, neutral, element), found.place(number, row))

    def total(row: list[Any]) -> None:
        values = start(row)
        inits = [values.get(a.init, a.init) for a in columns.accumulators]
        results = _reduce(
            columns, [(0, found.parts)], inits, lambda n: partial.load(found.place(n[0], row))
        )
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

    sizes, of_row = _sizes_of(columns), len(found.rows)

    def point(row: Sequence[Any], variables: Sequence[Any]) -> None:
        values = dict(zip(loop.regions[0].blocks[0].arguments, row, strict=True))
        for operation in before:
            copy(operation, values)
        _copy_body(columns, variables, values)

    with ir.InsertionPoint(loop):
        if found.along_rows:
            order = [ops.constant_index(size) for size in (*found.rows, *sizes)]
            ops.create_parallel(order, lambda place: point(place[:of_row], place[of_row:]))
        else:
            order = [ops.constant_index(size) for size in (*sizes, *found.rows)]
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
    limits = [
        [ops.constant_index(one) if isinstance(one, int) else one for one in (*pair, 1)]
        for pair in bounds
    ]

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
