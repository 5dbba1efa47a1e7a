"""Few reductions of many elements → parts of each, whose partial results are reduced in turn.

A thread for each of 1,000 columns, or a block for each of 8 rows, leaves most of a GPU idle. How
many parts there are depends on the shape alone, and so does the order of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.effects import Overlaps, access_of, accesses_in, is_pure
from aotc.chips import LARGE_GPU_THREADS, MAX_BLOCK_THREADS
from aotc.lower.mapping.columns import Columns
from aotc.lower.mapping.nest import known_product, loop_trips
from aotc.lower.mapping.rows import is_along_rows, row_items
from aotc.mlir import ir
from aotc.rewrites.cloning import copy

# Of a reduction in parts, elements: fewer take less time than another kernel.
_LEAST_ELEMENTS = 1 << 18
# Elements of a part: of a row, which a block goes along, and of a column, which a thread has.
_ROW_PART, _COLUMN_PART = 8 * MAX_BLOCK_THREADS, 32


class _Split(Struct, frozen=True):
    """`parts` of `size` elements, the last one of fewer, of the only reduction in a loop; `before`:
    what of the loop's body it is computed from."""

    columns: Columns
    parts: int
    size: int
    before: tuple[Any, ...]
    along_rows: bool


def split_reduction(loop: Any, overlaps: Overlaps) -> str | None:
    """Puts a loop over the parts of each reduction of an scf.parallel in front of it; says what was
    done, or None if nothing was."""
    found = _split_of(loop, overlaps)
    if found is None:
        return None
    with loop.location:
        _split(loop, found)
    return f"each reduction is one of {found.parts} partial results, which another kernel computes"


def _split_of(loop: Any, overlaps: Overlaps) -> _Split | None:
    trips = loop_trips(loop)
    points = known_product(trips)
    lowers, _, steps, inits = ops.operand_groups(loop)
    starts_at_0 = all(map(_is(0), lowers)) and all(map(_is(1), steps))
    items = None if points is None or inits or not starts_at_0 else row_items(loop, overlaps)
    if points is None or items is None:
        return None
    reductions = [item for item in items if not isinstance(item, ir.Operation | ir.OpView)]
    if len(reductions) != 1 or not isinstance(reductions[0], Columns):
        return None
    (columns,) = reductions
    count = columns.known_count
    bounds = columns.normal_bounds
    is_plain = columns.loop.name == "scf.for" and len(bounds) == 1 and bounds[0][::2] == (0, 1)
    if not columns.accumulators or not is_plain or count is None:
        return None
    along_rows = is_along_rows(columns, loop)
    size = size_of_part(points, count, along_rows=along_rows)
    body = [item for item in items if item != columns]
    in_front = items[: items.index(columns)]
    before = None if size is None else computed_from(columns.body, in_front, body, overlaps)
    if size is None or before is None:
        return None
    return _Split(columns, -(-count // size), size, before, along_rows)


def size_of_part(points: int, count: int, *, along_rows: bool) -> int | None:
    """Of how many elements a part is, where `points` results are of `count` elements each; None
    where each is computed as a whole. `along_rows`: a block goes along one together, else a thread
    has one."""
    if points * count < _LEAST_ELEMENTS or points == 0:
        return None
    threads, least = (MAX_BLOCK_THREADS, _ROW_PART) if along_rows else (1, _COLUMN_PART)
    wanted = LARGE_GPU_THREADS // (points * threads)
    # Those of a part, and the parts, are gone through one after the other.
    parts = min(wanted, count // least, max(2, math.isqrt(count)))
    return None if parts < 2 else -(-count // parts)


def _is(number: int) -> Any:
    return lambda value: ops.known_index(value) == number


def computed_from(
    operations: Sequence[Any], in_front: Sequence[Any], body: Sequence[Any], overlaps: Overlaps
) -> tuple[Any, ...] | None:
    """Those of the operations `in_front` of some that these are computed from, in order; None where
    what is loaded for them may be stored by the `body` that they are in."""
    made = [*operations]
    inside = [inner for op in operations for inner in ops.walk(op)]
    wanted = {operand for inner in inside for operand in inner.operands}
    before = []
    for operation in reversed(in_front):
        if wanted & set(operation.results):
            if access_of(operation) is None and not is_pure(operation):
                return None
            before.append(operation)
            made.append(operation)
            wanted |= set(operation.operands)
    loaded = [access.memref for operation in made for access in accesses_in(operation)]
    if any(overlaps.is_written(memref, body) for memref in loaded):
        return None
    return tuple(before[::-1])


class PartialResults:
    """Buffers of the results of the parts of each row, one for each of some types. Where rows were
    gone along by blocks their partial results are neighbours, else those of one part."""

    def __init__(
        self, types: Sequence[Any], parts: int, rows: Sequence[int], *, along_rows: bool
    ) -> None:
        """Allocates them at the insertion point."""
        self._along_rows = along_rows
        sizes = [*rows, parts] if along_rows else [parts, *rows]
        segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
        self._buffers = [
            ops.create("memref.alloc", [], [ir.MemRefType.get(sizes, type_)], segments).result
            for type_ in types
        ]

    def store(self, results: Sequence[Any], part: Any, row: Sequence[Any]) -> None:
        for result, buffer in zip(results, self._buffers, strict=True):
            ops.create("memref.store", [result, buffer, *self._place(part, row)])

    def load(self, part: Any, row: Sequence[Any]) -> list[Any]:
        return [
            ops.create(
                "memref.load", [buffer, *self._place(part, row)], [buffer.type.element_type]
            ).result
            for buffer in self._buffers
        ]

    def free(self) -> None:
        for buffer in self._buffers:
            ops.create("memref.dealloc", [buffer])

    def _place(self, part: Any, row: Sequence[Any]) -> list[Any]:
        return [*row, part] if self._along_rows else [part, *row]


def bounds_of_part(number: Any, size: int, count: int) -> tuple[Any, Any]:
    """Where the part with this number begins and ends."""
    lower = ops.index_op("arith.muli", number, ops.constant_index(size))
    upper = ops.index_op("arith.addi", lower, ops.constant_index(size))
    return lower, ops.index_op("arith.minsi", upper, ops.constant_index(count))


def _split(loop: Any, found: _Split) -> None:
    columns, (_, count, _) = found.columns, found.columns.normal_bounds[0]
    rows = [trips for trips in loop_trips(loop) if trips is not None]
    with ir.InsertionPoint(loop):
        types = [accumulator.type for accumulator in columns.accumulators]
        partial = PartialResults(types, found.parts, rows, along_rows=found.along_rows)
        sizes = [ops.constant_index(size) for size in (found.parts, *rows)]
        zero, one = ops.constant_index(0), ops.constant_index(1)

        def part(variables: list[Any]) -> None:
            number, *row = variables
            values = dict(zip(loop.regions[0].blocks[0].arguments, row, strict=True))
            for operation in found.before:
                copy(operation, values)
            lower, upper = bounds_of_part(number, found.size, count)
            neutral = [accumulator.neutral() for accumulator in columns.accumulators]

            def element(variable: Any) -> list[Any]:
                values[columns.variables[0]] = variable
                for operation in columns.body:
                    copy(operation, values)
                return [values.get(a.value, a.value) for a in columns.accumulators]

            partial.store(_reduce(columns, (lower, upper, one), neutral, element), number, row)

        ops.create_parallel(sizes, part)
    row = list(loop.regions[0].blocks[0].arguments)
    with ir.InsertionPoint(columns.loop):
        inits = [accumulator.init for accumulator in columns.accumulators]
        bounds = (zero, sizes[0], one)
        results = _reduce(columns, bounds, inits, lambda part: partial.load(part, row))
    for old, new in zip(columns.loop.results, results, strict=True):
        old.replace_all_uses_with(new)
    ops.erase(columns.loop)
    with ir.InsertionPoint.after(loop):
        partial.free()


def _reduce(columns: Columns, bounds: Sequence[Any], inits: Sequence[Any], element: Any) -> Any:
    """The results of a loop with the reductions of `columns`, of what `element` makes of its
    variable."""
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
