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
    if points * count < _LEAST_ELEMENTS:
        return None
    threads, part = 1, _COLUMN_PART
    if is_along_rows(columns, loop):
        threads, part = MAX_BLOCK_THREADS, _ROW_PART
    wanted = LARGE_GPU_THREADS // (points * threads)
    # Those of a part, and the parts, are gone through one after the other.
    parts = min(wanted, count // part, max(2, math.isqrt(count)))
    before = _computed_from(columns, items, overlaps)
    if parts < 2 or before is None:
        return None
    size = -(-count // parts)
    return _Split(columns, -(-count // size), size, before)


def _is(number: int) -> Any:
    return lambda value: ops.known_index(value) == number


def _computed_from(
    columns: Columns, items: Sequence[Any], overlaps: Overlaps
) -> tuple[Any, ...] | None:
    """The operations in front of the reduction that it is computed from, in order; None where it
    may load what the loop stores."""
    body = [item for item in items if item != columns]
    made = [*columns.body]
    wanted = {
        operand for op in columns.body for inner in ops.walk(op) for operand in inner.operands
    }
    before = []
    for operation in reversed(items[: list(items).index(columns)]):
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


def _split(loop: Any, found: _Split) -> None:
    columns, (_, count, _) = found.columns, found.columns.normal_bounds[0]
    rows = [trips for trips in loop_trips(loop) if trips is not None]
    with ir.InsertionPoint(loop):
        segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
        buffers = [
            ops.create(
                "memref.alloc",
                [],
                [ir.MemRefType.get([found.parts, *rows], accumulator.type)],
                segments,
            ).result
            for accumulator in columns.accumulators
        ]
        sizes = [ops.constant_index(size) for size in (found.parts, *rows)]
        zero, one = ops.constant_index(0), ops.constant_index(1)

        def part(variables: list[Any]) -> None:
            number, *row = variables
            values = dict(zip(loop.regions[0].blocks[0].arguments, row, strict=True))
            for operation in found.before:
                copy(operation, values)
            lower = ops.index_op("arith.muli", number, ops.constant_index(found.size))
            upper = ops.index_op("arith.addi", lower, ops.constant_index(found.size))
            upper = ops.index_op("arith.minsi", upper, ops.constant_index(count))
            neutral = [accumulator.neutral() for accumulator in columns.accumulators]

            def element(variable: Any) -> list[Any]:
                values[columns.variables[0]] = variable
                for operation in columns.body:
                    copy(operation, values)
                return [values.get(a.value, a.value) for a in columns.accumulators]

            for buffer, result in zip(
                buffers, _reduce(columns, (lower, upper, one), neutral, element), strict=True
            ):
                ops.create("memref.store", [result, buffer, number, *row])

        ops.create_parallel(sizes, part)
    row = list(loop.regions[0].blocks[0].arguments)
    with ir.InsertionPoint(columns.loop):

        def partial(variable: Any) -> list[Any]:
            return [
                ops.create(
                    "memref.load", [buffer, variable, *row], [buffer.type.element_type]
                ).result
                for buffer in buffers
            ]

        inits = [accumulator.init for accumulator in columns.accumulators]
        results = _reduce(columns, (zero, sizes[0], one), inits, partial)
    for old, new in zip(columns.loop.results, results, strict=True):
        old.replace_all_uses_with(new)
    ops.erase(columns.loop)
    with ir.InsertionPoint.after(loop):
        for buffer in buffers:
            ops.create("memref.dealloc", [buffer])


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
