"""Builds the kernel of a row plan: see `aotc.lower.mapping.rows`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.effects import Access, Overlaps, access_of, accesses_in, is_pure
from aotc.chips import WARP
from aotc.lower.mapping.build import EQ, ULT, Launch, create_launch
from aotc.lower.mapping.columns import Accumulator, Columns
from aotc.lower.mapping.nest import (
    Dimension,
    dimensions_of,
    induction_values,
    known_product,
    product,
)
from aotc.lower.mapping.order import AccessOrder, Use
from aotc.lower.mapping.rows import (
    COLUMNS_OF_LANE,
    LANES_BLOCK,
    POINTS,
    Kept,
    RowPlan,
    are_for_lanes,
)
from aotc.lower.mapping.scan_kernel import ScanKernel, shared_for
from aotc.lower.mapping.scans import Scan
from aotc.lower.mapping.strides import Team, combine_all, combine_lanes, reduce_in_strides
from aotc.mlir import ir
from aotc.ops import create_either
from aotc.rewrites.cloning import copy
from aotc.rewrites.neighbour_accesses import mark_neighbour


def launch_rows(loop: Any, plan: RowPlan, overlaps: Overlaps) -> None:
    """Replaces the loop over rows by a launch for each of the plan's forms, one of which is
    executed."""
    with ir.InsertionPoint(loop):
        rows = dimensions_of(loop)
        count = ops.capped_product([d.trips for d in rows])
        known = known_product([d.known_trips for d in rows])

        def launch(kept: Kept | None) -> None:
            blocks = count if known is None else ops.constant_index(known // plan.rows)
            shared = [type_ for scan in plan.scans for type_ in shared_for(scan, plan.threads)]
            made = create_launch([blocks], plan.block, shared)
            with ir.InsertionPoint(made.end):
                row, thread = _place(made, plan)
                variables = induction_values(rows, row)
                values = dict(zip(loop.regions[0].blocks[0].arguments, variables, strict=True))
                _RowKernel(plan, kept, overlaps, thread, values, made.shared).fill()

        def launch_lanes(length: Any) -> None:
            log_lanes = _log_lanes(length)
            of_block = _rows_of_block(log_lanes)
            made = create_launch([ops.index_op("arith.ceildivui", count, of_block)], LANES_BLOCK)
            with ir.InsertionPoint(made.end):
                lanes = _Lanes.of(made, log_lanes, count)
                variables = induction_values(rows, lanes.row)
                values = dict(zip(loop.regions[0].blocks[0].arguments, variables, strict=True))
                _RowKernel(plan, None, overlaps, lanes.lane, values, [], lanes).fill()

        def launch_any() -> None:
            if not plan.has_lanes:
                _launch_by_length(plan, launch)
                return
            length = _length(plan.columns)
            create_either(
                are_for_lanes(length, count),
                lambda: launch_lanes(length),
                lambda: _launch_by_length(plan, launch),
            )

        if known is None:
            # A launch without blocks is an error in CUDA.
            is_any = ops.compare(ULT, ops.constant_index(0), count)
            ops.create_if(is_any, launch_any)
        elif known > 0:
            launch_any()
    ops.erase(loop)


def _length(columns: Sequence[Columns]) -> Any:
    """The largest number of columns of these loops, which the host knows, at the insertion
    point."""
    lengths: dict[tuple[Any, ...], Any] = {}
    for item in columns:
        # Constants may be defined in the loop, so they are created again for the host.
        bounds = [
            [ops.constant_index(v) if isinstance(v, int) else v for v in one]
            for one in item.normal_bounds
        ]
        lengths.setdefault(item.normal_bounds, product([Dimension.of(*one) for one in bounds]))
    return functools.reduce(functools.partial(ops.index_op, "arith.maxui"), lengths.values())


def _launch_by_length(plan: RowPlan, launch: Callable[[Kept | None], None]) -> None:
    """Creates host code that chooses the form by the number of columns."""
    if len(plan.forms) == 1:
        launch(plan.forms[0])
        return
    length = _length(plan.columns[:1])

    def choose(forms: Sequence[Kept | None]) -> None:
        first, *others = forms
        if first is None or not others:
            launch(first)
        else:
            create_either(_is_within(length, first), lambda: launch(first), lambda: choose(others))

    choose(plan.forms)


def _is_within(length: Any, kept: Kept) -> Any:
    """Whether the length is in the range of a form: one unsigned comparison."""
    above = ops.index_op("arith.subi", length, ops.constant_index(kept.least))
    return ops.compare(ULT, above, ops.constant_index(kept.most - kept.least + 1))


def _place(launch: Launch, plan: RowPlan) -> tuple[Any, Any]:
    """The row, and the thread's number in it."""
    block = launch.block_ids[0]
    number = launch.number(plan.block)
    if plan.rows == 1:
        return block, number
    # Blocks are one warp wide, so y and z count rows.
    above = launch.number(plan.block, first_axis=1)
    first = ops.index_op("arith.muli", block, ops.constant_index(plan.rows))
    return ops.index_op("arith.addi", first, above), launch.thread_ids[0]


def _log_lanes(length: Any) -> Any:
    """log2 of the number of lanes for each row of this length, at the insertion point."""
    found = ops.constant_index(0)
    for number in range(1, WARP.bit_length()):
        is_longer = ops.compare(ULT, ops.constant_index(COLUMNS_OF_LANE << (number - 1)), length)
        found = ops.select(is_longer, ops.constant_index(number), found)
    return found


def _rows_of_block(log_lanes: Any) -> Any:
    return ops.index_op("arith.shrui", ops.constant_index(LANES_BLOCK.threads), log_lanes)


class _Lanes(Struct, frozen=True):
    """The 2**`log_lanes` adjacent lanes of a row, of which this thread is number `lane`. Unless
    `is_there` holds, there is no such row, and `row` is the last one."""

    log_lanes: Any
    lane: Any
    row: Any
    is_there: Any

    @staticmethod
    def of(launch: Launch, log_lanes: Any, rows: Any) -> _Lanes:
        """The lanes of a thread of the launch, at the insertion point."""
        thread, one = launch.thread_ids[0], ops.constant_index(1)
        last_lane = ops.index_op("arith.subi", ops.index_op("arith.shli", one, log_lanes), one)
        first = ops.index_op("arith.muli", launch.block_ids[0], _rows_of_block(log_lanes))
        row = ops.index_op("arith.addi", first, ops.index_op("arith.shrui", thread, log_lanes))
        last = ops.index_op("arith.subi", rows, one)
        return _Lanes(
            log_lanes,
            ops.index_op("arith.andi", thread, last_lane),
            ops.index_op("arith.minui", row, last),
            ops.compare(ULT, row, rows),
        )

    @property
    def width(self) -> Any:
        """The number of lanes, at the insertion point."""
        return ops.index_op("arith.shli", ops.constant_index(1), self.log_lanes)


class _Slot(Struct, frozen=True):
    """A column that a thread keeps.

    `own` is its number. `position` is the column to compute on, which is the row's last column if
    `is_there` (None: always) does not hold.
    """

    own: Any
    position: Any
    is_there: Any | None


class _RowKernel:
    """Fills the kernel item by item, at the insertion point."""

    def __init__(
        self,
        plan: RowPlan,
        kept: Kept | None,
        overlaps: Overlaps,
        thread: Any,
        values: dict[Any, Any],
        shared: Sequence[Any],
        lanes: _Lanes | None = None,
    ) -> None:
        self._plan = plan
        self._lanes = lanes
        self._shared = list(shared)
        self._kept = kept
        self._thread = thread
        self._values = values
        self._order = AccessOrder(overlaps)
        # Created once.
        self._slots: list[_Slot] | None = None
        # Loop bounds → the loop's variables at the slots' positions.
        self._points: dict[tuple[Any, ...], list[list[Any]]] = {}
        # Variable at a slot's position → the variable at the slot's own column.
        self._own: dict[Any, Any] = {}

    def fill(self) -> None:
        for item in self._plan.items:
            if isinstance(item, Scan):
                self._scan(item)
            elif not isinstance(item, Columns):
                self._row_operation(item)
            elif self._kept is not None:
                self._in_registers(item, self._kept)
            else:
                self._in_strides(item)
            self._order.end_loop()

    # --- Operations executed once per row ---

    def _row_operation(self, operation: Any) -> None:
        access = access_of(operation)
        if access is None:
            copy(operation, self._values)
            return
        access = _moved(access, self._values)
        self._before(Use(access.memref, None, access.writes))
        if not access.writes:
            copy(operation, self._values)
            self._order.seen(access.memref)
            return
        is_first = ops.compare(EQ, self._thread, ops.constant_index(0))
        if self._lanes is not None:
            is_first = ops.binary("arith.andi", is_first, self._lanes.is_there)
        ops.create_if(is_first, lambda: copy(operation, self._values))
        self._order.forget(Use(access.memref, None, writes=True))

    def _before(self, use: Use) -> None:
        if self._order.needs_barrier(use):
            ops.create("gpu.barrier")
        self._order.note(use)

    # --- Loops along the row, their elements read from memory ---

    def _in_strides(self, columns: Columns) -> None:
        accesses = [a for operation in columns.body for a in accesses_in(operation)]
        for use in [self._use(columns, access) for access in accesses]:
            self._before(use)
        team = Team(self._plan.threads, POINTS, self._thread)
        if (lanes := self._lanes) is not None:
            team = Team(lanes.width, COLUMNS_OF_LANE, lanes.lane, has_points=lanes.is_there)
        self._combine(columns, reduce_in_strides(columns, team, self._values))

    def _use(self, columns: Columns, access: Access) -> Use:
        """The access in the loop's body before it is cloned, as a `Use`."""
        own = set(columns.variables)
        inside = {r for op in columns.body for inner in ops.walk(op) for r in inner.results}
        memref = self._values.get(access.memref, access.memref)
        if not own <= set(access.indices) or inside & {*access.indices, access.memref}:
            return Use(memref, None, access.writes)
        bounds = _normal_bounds(columns)
        pattern = tuple(
            ("column", columns.variables.index(i), bounds) if i in own else self._values.get(i, i)
            for i in access.indices
        )
        return Use(memref, pattern, access.writes)

    # --- Scans of the row ---

    def _scan(self, scan: Scan) -> None:
        body = [*scan.columns.body, *scan.after]
        for access in [a for operation in body for a in accesses_in(operation)]:
            # A thread has different columns in a scan than in other loops.
            memref = self._values.get(access.memref, access.memref)
            self._before(Use(memref, None, access.writes))
        shared = [self._shared.pop(0) for _ in shared_for(scan, self._plan.threads)]
        kernel = ScanKernel(scan, self._plan.threads, self._thread, shared, self._values)
        self._values[scan.columns.loop.results[0]] = kernel.build()

    # --- Loops along the row, their elements kept by the threads ---

    def _in_registers(self, columns: Columns, kept: Kept) -> None:
        if self._slots is None:
            self._slots = self._create_slots(columns, kept)
        copies = self._copies(columns, self._slots)
        flags = [slot.is_there for slot in self._slots]
        for operation in columns.body:
            access = access_of(operation)
            use = None if access is None else self._use(columns, access)
            for values, flag in zip(copies, flags, strict=True):
                if access is None or use is None:
                    self._compute(operation, values)
                else:
                    self._access(_moved(access, values), use, values, flag)
        partial = []
        for accumulator in columns.accumulators:
            found = []
            for values, flag in zip(copies, flags, strict=True):
                value = values.get(accumulator.value, accumulator.value)
                if flag is not None:
                    choices = [flag, value, accumulator.neutral()]
                    value = ops.create("arith.select", choices, [value.type]).result
                found.append(value)
            partial.append(combine_all(accumulator, found))
        self._combine(columns, partial)

    def _copies(self, columns: Columns, slots: Sequence[_Slot]) -> list[dict[Any, Any]]:
        """The values of the loop's body for each column of this thread."""
        bounds = _normal_bounds(columns)
        if bounds not in self._points:
            dimensions = columns.dimensions(self._values)
            self._points[bounds] = [induction_values(dimensions, slot.position) for slot in slots]
            for slot, variables in zip(slots, self._points[bounds], strict=True):
                if slot.is_there is not None:
                    own = induction_values(dimensions, slot.own)
                    self._own.update(zip(variables, own, strict=True))
        return [
            self._values | dict(zip(columns.variables, variables, strict=True))
            for variables in self._points[bounds]
        ]

    def _create_slots(self, columns: Columns, kept: Kept) -> list[_Slot]:
        slots = []
        threads = self._plan.threads
        known = columns.known_count
        if self._plan.neighbours > 1:
            return self._create_neighbours(kept)
        if known is None:
            count = product(columns.dimensions(self._values))
            last = ops.index_op("arith.subi", count, ops.constant_index(1))
        else:
            count, last = ops.constant_index(known), ops.constant_index(known - 1)
        for number in range(kept.columns):
            own = self._thread
            if number > 0:
                offset = ops.constant_index(number * threads)
                own = ops.index_op("arith.addi", own, offset)
            position, is_there = own, None
            if (number + 1) * threads > kept.least:
                # A thread without a column computes on the last one, and stores nothing.
                is_there = ops.compare(ULT, own, count)
                position = ops.index_op("arith.minui", own, last)
            slots.append(_Slot(own, position, is_there))
        return slots

    def _create_neighbours(self, kept: Kept) -> list[_Slot]:
        """The columns of a thread in groups of `neighbours` adjacent ones, all of which exist."""
        vector = self._plan.neighbours
        first = ops.index_op("arith.muli", self._thread, ops.constant_index(vector))
        slots = []
        for number in range(kept.columns):
            group, at = divmod(number, vector)
            offset = ops.constant_index(group * self._plan.threads * vector + at)
            own = ops.index_op("arith.addi", first, offset)
            slots.append(_Slot(own, own, None))
        return slots

    def _compute(self, operation: Any, values: dict[Any, Any]) -> None:
        for inner in () if is_pure(operation) else accesses_in(operation):
            memref = values.get(inner.memref, inner.memref)
            self._before(Use(memref, None, inner.writes))
            self._order.seen(memref)
        copy(operation, values)

    def _access(self, access: Access, use: Use, values: dict[Any, Any], flag: Any | None) -> None:
        operation = access.operation
        known = self._order.known(access)
        if not access.writes and known is not None:
            values[operation.results[0]] = known
            return
        self._before(use)
        if not access.writes:
            made = copy(operation, values)
            self._mark(made)
            self._order.loaded(access, use, made.results[0])
            return
        value = values.get(operation.operands[0], operation.operands[0])
        made = self._store(operation, values, flag)
        useless = self._order.stored(access, use, value, made)
        if useless is not None:
            ops.erase(useless)

    def _mark(self, access: Any) -> None:
        if self._plan.neighbours > 1:
            mark_neighbour(access, self._plan.neighbours)

    def _store(self, operation: Any, values: dict[Any, Any], flag: Any | None) -> Any:
        if flag is None:
            made = copy(operation, values)
            self._mark(made)
            return made
        branch = ops.create("scf.if", [flag], regions=2)
        with ir.InsertionPoint(branch.regions[0].blocks.append()):
            # The address uses the thread's own column, a constant offset from its first one, so
            # that no register has to keep the address since the load.
            copy(operation, {value: self._own.get(to, to) for value, to in values.items()})
            ops.create("scf.yield")
        return branch

    # --- Reductions ---

    def _combine(self, columns: Columns, partial: Sequence[Any]) -> None:
        """Combines the partial results of the row's threads into the loop's results."""
        if self._lanes is not None:
            totals = combine_lanes(columns.accumulators, partial, self._lanes.log_lanes, WARP)
        else:
            is_warp = self._plan.threads == WARP
            pairs = zip(columns.accumulators, partial, strict=True)
            totals = [combine_threads(*pair, is_warp=is_warp) for pair in pairs]
        for accumulator, total, result in zip(
            columns.accumulators, totals, columns.loop.results, strict=True
        ):
            init = self._values.get(accumulator.init, accumulator.init)
            self._values[result] = accumulator.combine(init, total)


def combine_threads(accumulator: Accumulator, value: Any, *, is_warp: bool) -> Any:
    """Combines the values of all threads of a warp or block; each thread gets the result."""
    attributes = {
        "op": ir.Attribute.parse(f"#gpu<all_reduce_op {accumulator.kind}>"),
        "uniform": ir.UnitAttr.get(),
    }
    name, regions = ("gpu.subgroup_reduce", 0) if is_warp else ("gpu.all_reduce", 1)
    bit = ops.integer(1)
    if value.type != bit:
        return ops.create(name, [value], [value.type], attributes, regions).result
    # Shuffles exchange 32-bit words.
    word = ops.unary("arith.extui", value, ops.integer(32))
    total = ops.create(name, [word], [word.type], attributes, regions).result
    return ops.unary("arith.trunci", total, bit)


def _normal_bounds(columns: Columns) -> tuple[Any, ...]:
    """A key that is equal for loops in which each thread has the same columns."""
    bounds = columns.normal_bounds
    # For a single loop, the upper bound does not affect which thread has which column.
    return tuple((b[0], b[2]) if len(bounds) == 1 else b for b in bounds)


def _moved(access: Access, values: dict[Any, Any]) -> Access:
    """The access with its operands in the kernel."""
    return Access(
        access.operation,
        values.get(access.memref, access.memref),
        tuple(values.get(i, i) for i in access.indices),
        access.writes,
    )
