"""Kernels for rows of different lengths that are loaded from memory: several lanes share a row.

The rows of a sparse matrix have this form: the positions of a row's first and last element are
loaded. The number of threads per row is chosen at launch by the mean row length: a power of two of
adjacent lanes, so that a warp has several short rows, and loads along a row are coalesced. The
lanes' partial results are combined by shuffles.

A row that is much longer than the mean would stall its warp, and so the block. Its number is put
into a list in shared memory, and all threads of the block compute the rows in the list together.
The order in which a row is reduced only depends on its length and on the mean length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.effects import Overlaps, access_of, accesses_in, is_pure
from aotc.chips import WARP
from aotc.lower.mapping.blocks import PREFERRED_THREADS, BlockShape
from aotc.lower.mapping.build import EQ, SLT, ULT, create_launch, create_loop, shared_type
from aotc.lower.mapping.columns import Accumulator, Columns
from aotc.lower.mapping.nest import dimensions_of, induction_values, product
from aotc.lower.mapping.row_kernel import combine_threads
from aotc.lower.mapping.rows import row_items
from aotc.lower.mapping.strides import combine_all, combine_lanes
from aotc.mlir import ir
from aotc.rewrites.cloning import copy, copy_interleaved

_THREADS = PREFERRED_THREADS
_LOG_THREADS = _THREADS.bit_length() - 1
_LOG_WARP = WARP.bit_length() - 1
# Elements that a thread loads at a time: in a row of its lanes, and in a row of the block.
_POINTS, _POINTS_OF_BLOCK = 2, 8
# The smallest number of elements per lane for a row of mean length.
_ELEMENTS_OF_LANE = 2
# A row is long if a lane would have more elements than this.
_MOST_OF_LANE = 16
_SLE = 3  # arith.cmpi's number for signed <=
_ADDI = 1  # memref.atomic_rmw's number


class RaggedPlan(Struct, frozen=True):
    """`row` is the loop along a row, between the operations `before` and `after` it.

    The total number of elements is at most the size of the last dimension of `elements`, a memref.
    """

    before: tuple[Any, ...]
    row: Columns
    after: tuple[Any, ...]
    elements: Any

    def __str__(self) -> str:
        return (
            f"a kernel with blocks of {BlockShape(_THREADS)}: 1 to {WARP} lanes for each row, by "
            "the rows' mean length, or a block for a row that is much longer"
        )


def plan_ragged_rows(loop: Any, overlaps: Overlaps) -> RaggedPlan | None:
    """The plan for a loop whose iterations reduce rows with loaded bounds; None for others."""
    items = row_items(loop, overlaps) or []
    columns = [item for item in items if isinstance(item, Columns)]
    if len(columns) != 1 or not columns[0].accumulators or not _is_ragged(columns[0], loop):
        return None
    (row,) = columns
    at = items.index(row)
    before, after = items[:at], items[at + 1 :]
    others = [*before, *after]
    # Each thread executes the operations before the loop, so a check among them would fail many
    # times.
    if not all(_is_effect_free(op) for op in before):
        return None
    if not all(is_pure(op) or access_of(op) is not None for op in others):
        return None
    elements = _elements_of(row, loop)
    if elements is None:
        return None
    return RaggedPlan(tuple(before), row, tuple(after), elements)


def _is_effect_free(operation: Any) -> bool:
    access = access_of(operation)
    return is_pure(operation) if access is None else not access.writes


def _is_ragged(row: Columns, loop: Any) -> bool:
    """Whether the bounds of the loop along the row are loaded."""
    return any(_is_loaded(bound, loop) for bounds in row.bounds for bound in bounds[:2])


def _is_loaded(value: Any, loop: Any) -> bool:
    made = ops.defining(value)
    if made is None or ops.is_made_outside(value, loop):
        return False
    if made.name == "memref.load":
        return True
    return is_pure(made) and any(_is_loaded(operand, loop) for operand in made.operands)


def _elements_of(row: Columns, loop: Any) -> Any | None:
    """The memref with the row's elements, which are adjacent in it; None if there is none.

    Also None if adjacent iterations of the outer loop read adjacent elements, such as columns of a
    dense matrix: these should be adjacent threads.
    """
    variables = list(loop.regions[0].blocks[0].arguments)
    loads = [a for op in row.body for a in accesses_in(op) if a.indices]
    if any(load.indices[-1] in variables for load in loads):
        return None
    found = (load.memref for load in loads if _is_offset_of(load.indices[-1], row.variables[-1]))
    return next((memref for memref in found if ops.is_made_outside(memref, loop)), None)


def _is_offset_of(index: Any, variable: Any) -> bool:
    """Whether the index is the variable, or the variable plus another number."""
    made = ops.defining(index)
    return index == variable or (
        made is not None and made.name == "arith.addi" and variable in made.operands
    )


def launch_ragged_rows(loop: Any, plan: RaggedPlan) -> None:
    """Replaces the loop by a launch."""
    with ir.InsertionPoint(loop):
        rows = dimensions_of(loop)
        count = ops.capped_product([d.trips for d in rows])
        # A launch without blocks is an error in CUDA.
        is_any = ops.compare(ULT, ops.constant_index(0), count)

        def launch() -> None:
            shift = _log_lanes(plan.elements, count)
            blocks = ops.index_op("arith.ceildivui", count, _rows_of_block(shift))
            list_ = shared_type([1 + _THREADS], ops.integer(32))
            made = create_launch([blocks], BlockShape(_THREADS), [list_])
            with ir.InsertionPoint(made.end):
                (shared,) = made.shared
                arguments = list(loop.regions[0].blocks[0].arguments)
                block, thread = made.block_ids[0], made.thread_ids[0]
                _RaggedKernel(plan, arguments, rows, count, shift, shared, block, thread).fill()

        ops.create_if(is_any, launch)
    ops.erase(loop)


def _log_lanes(elements: Any, count: Any) -> Any:
    """log2 of the number of lanes per row, computed on the host. It is a block if most rows would
    be long."""
    total = ops.dim(elements, elements.type.rank - 1)
    mean = ops.index_op("arith.divui", total, count)
    bounds = [_ELEMENTS_OF_LANE << i for i in range(_LOG_WARP)]
    shift = ops.constant_index(0)
    for lanes, bound in enumerate([*bounds, WARP * _MOST_OF_LANE], start=1):
        number = ops.constant_index(lanes if lanes <= _LOG_WARP else _LOG_THREADS)
        is_more = ops.compare(ULT, ops.constant_index(bound), mean)
        shift = ops.select(is_more, number, shift)
    return shift


def _rows_of_block(shift: Any) -> Any:
    return ops.index_op("arith.shrui", ops.constant_index(_THREADS), shift)


class _RaggedKernel(Struct, frozen=True):
    """Fills the kernel at the insertion point.

    `shared` contains the number of deferred rows, and then their numbers in the block.
    """

    plan: RaggedPlan
    variables: list[Any]
    rows: list[Any]
    count: Any
    shift: Any
    shared: Any
    block: Any
    thread: Any

    def fill(self) -> None:
        zero, one = ops.constant_index(0), ops.constant_index(1)
        lanes = ops.index_op("arith.shli", one, self.shift)
        first = ops.index_op("arith.muli", self.block, _rows_of_block(self.shift))
        group = ops.index_op("arith.shrui", self.thread, self.shift)
        lane = ops.index_op("arith.andi", self.thread, ops.index_op("arith.subi", lanes, one))
        row = ops.index_op("arith.addi", first, group)
        is_first_thread = ops.compare(EQ, self.thread, zero)
        none = ops.constant(ops.integer(32), 0)
        ops.create_if(
            is_first_thread, lambda: ops.create("memref.store", [none, self.shared, zero])
        )
        ops.create("gpu.barrier")

        # Threads beyond the last row read that row, but use none of its elements.
        is_there = ops.compare(ULT, row, self.count)
        last = ops.index_op("arith.subi", self.count, one)
        values, length = self._begin(ops.index_op("arith.minui", row, last))
        is_short = ops.binary("arith.andi", is_there, self._is_short(length, lanes))
        own = ops.select(is_short, length, zero)
        partial = self._reduce_in_strides(lane, lanes, own, _POINTS, values)
        steps = ops.index_op("arith.minui", self.shift, ops.constant_index(_LOG_WARP))
        totals = combine_lanes(self.plan.row.accumulators, partial, steps, WARP)
        is_first = ops.compare(EQ, lane, zero)
        leads = ops.binary("arith.andi", is_first, is_there)

        def end() -> None:
            ops.create_either(
                is_short, lambda: self._end(totals, values), lambda: self._defer(group)
            )

        ops.create_if(leads, end)
        ops.create("gpu.barrier")
        self._long_rows(first, is_first_thread)

    def _begin(self, row: Any) -> tuple[dict[Any, Any], Any]:
        """The values before the loop along a row, and the row's number of elements."""
        values = dict(zip(self.variables, induction_values(self.rows, row), strict=True))
        for operation in self.plan.before:
            copy(operation, values)
        return values, product(self.plan.row.dimensions(values))

    def _is_short(self, length: Any, lanes: Any) -> Any:
        """Whether each lane has few elements. Rows with more lanes than a warp always go through
        the list."""
        most = ops.index_op("arith.muli", lanes, ops.constant_index(_MOST_OF_LANE))
        is_of_warp = ops.compare(_SLE, self.shift, ops.constant_index(_LOG_WARP))
        zero = ops.constant_index(0)
        most = ops.select(is_of_warp, most, zero)
        return ops.compare(_SLE, length, most)

    def _reduce_in_strides(
        self, first: Any, width: Any, count: Any, points: int, values: dict[Any, Any]
    ) -> list[Any]:
        """A thread's partial results over the elements `first`, `first + width`, ....

        `points` elements are computed at a time. Elements beyond the end are clamped to the last
        one and not used.
        """
        accumulators = self.plan.row.accumulators
        stride = ops.index_op("arith.muli", width, ops.constant_index(points))
        last = ops.index_op("arith.subi", count, ops.constant_index(1))

        def step(base: Any, carried: list[Any]) -> list[Any]:
            copies, flags, position = [], [], base
            dimensions = self.plan.row.dimensions(values)
            for number in range(points):
                if number > 0:
                    position = ops.index_op("arith.addi", position, width)
                flags.append(ops.compare(SLT, position, count))
                inside = ops.index_op("arith.minsi", position, last)
                variables = induction_values(dimensions, inside)
                copies.append(values | dict(zip(self.plan.row.variables, variables, strict=True)))
            copy_interleaved(self.plan.row.body, copies)
            new = []
            for accumulator, old in zip(accumulators, carried, strict=True):
                found = [_chosen(accumulator, *one) for one in zip(flags, copies, strict=True)]
                new.append(accumulator.combine(old, combine_all(accumulator, found)))
            return new

        return create_loop(first, count, stride, [a.neutral() for a in accumulators], step)

    def _defer(self, group: Any) -> None:
        """Appends the row to the list. The order in the list affects no result."""
        i32, zero, one = ops.integer(32), ops.constant_index(0), ops.constant_index(1)
        kind = {"kind": ir.IntegerAttr.get(ops.integer(64), _ADDI)}
        operands = [ops.constant(i32, 1), self.shared, zero]
        place = ops.create("memref.atomic_rmw", operands, [i32], kind).result
        number = ops.index_op("arith.addi", ops.unary("arith.index_cast", place, ops.index()), one)
        word = ops.unary("arith.index_cast", group, i32)
        ops.create("memref.store", [word, self.shared, number])

    def _long_rows(self, first: Any, is_first_thread: Any) -> None:
        zero, one = ops.constant_index(0), ops.constant_index(1)

        def load(number: Any) -> Any:
            word = ops.load(self.shared, [number])
            return ops.unary("arith.index_cast", word, ops.index())

        def compute(number: Any) -> None:
            group = load(ops.index_op("arith.addi", number, one))
            values, length = self._begin(ops.index_op("arith.addi", first, group))
            width = ops.constant_index(_THREADS)
            partial = self._reduce_in_strides(self.thread, width, length, _POINTS_OF_BLOCK, values)
            pairs = zip(self.plan.row.accumulators, partial, strict=True)
            totals = [combine_threads(a, value, is_warp=False) for a, value in pairs]
            ops.create_if(is_first_thread, lambda: self._end(totals, values))

        ops.create_for(zero, load(zero), one, compute)

    def _end(self, totals: Sequence[Any], values: dict[Any, Any]) -> None:
        """Creates the operations after the loop along a row."""
        row = self.plan.row
        inside = dict(values)
        for accumulator, total, result in zip(
            row.accumulators, totals, row.loop.results, strict=True
        ):
            init = inside.get(accumulator.init, accumulator.init)
            inside[result] = accumulator.combine(init, total)
        for operation in self.plan.after:
            copy(operation, inside)


def _chosen(accumulator: Accumulator, flag: Any, values: dict[Any, Any]) -> Any:
    value = values.get(accumulator.value, accumulator.value)
    return ops.select(flag, value, accumulator.neutral())
