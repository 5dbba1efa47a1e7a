"""A `Flow` and its `BlockPlan` → the function that runs one block, which the runtime calls.

    void run(void *const *parameters, const aotc_cpu_block *block)

It runs the parallel regions of the plan in loops over the threads. Between these loops is the code
that the group (block, warp or row) executes once. A value that one region computes and another uses
is recomputed there if that is cheap. Otherwise it has a slot for every thread: in the block's
scratch memory or, within a warp or a row, on the stack, where LLVM promotes it to registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aotc.chips import WARP
from aotc.mlir import ir
from aotc.ops import create, unary
from aotc.targets.cpu import build
from aotc.targets.cpu.blocks.block_plan import BlockPlan, GroupKind, Nested, plan_block
from aotc.targets.cpu.blocks.bounds import Bound, take_guards
from aotc.targets.cpu.blocks.cloning import clone, recomputable
from aotc.targets.cpu.blocks.debug import DebugInfo
from aotc.targets.cpu.blocks.flow import (
    Block,
    Flow,
    Value,
    expand_switches,
    read_flow,
    split_edges,
)
from aotc.targets.cpu.blocks.frame import (
    SLOT_ALIGNMENT,
    Frame,
    Level,
    Slots,
    crossing_values,
    is_shared,
    users_of,
)
from aotc.targets.cpu.blocks.groups import BlockGroup, Body, Cursor, RowGroup, WarpGroup
from aotc.targets.cpu.blocks.parallel_regions import ParallelRegion
from aotc.targets.cpu.blocks.prologue import (
    ThreadIds,
    load_parameters,
    uses_slots,
)
from aotc.targets.cpu.blocks.region_guards import Guard, find_guard
from aotc.targets.cpu.blocks.thread_memory import allocas, lasting_allocas
from aotc.targets.cpu.blocks.thread_run import ThreadRun
from aotc.targets.cpu.blocks.warp_ids import rewrite_to_warp_ids
from aotc.targets.cpu.sizes import Size, round_up, size_of
from aotc.targets.cpu.synchronize import WARP_SLOTS
from aotc.targets.cpu.thread_function import CONTEXT, ThreadFunction

Bounds = dict[int, list[Bound]]


def add_block_function(
    module: Any,
    symbol: str,
    function: Any,
    thread: ThreadFunction,
    *,
    has_syncs: bool,
    debug_name: str | None,
) -> int:
    """Appends the llvm.func @symbol to `module`; returns the bytes of scratch memory of a thread.

    `function` is the thread function, which is consumed. Raises DivergenceError if threads may
    diverge before a synchronization, DynamicAllocaError, UnknownSizeError. With `debug_name`, the
    name of the kernel, the function gets debug information.
    """
    first_id = len(function.regions[0].blocks[0].arguments) - len(CONTEXT)
    bounds: Bounds = {0: [], 1: [], 2: []}
    if not has_syncs:
        bounds = take_guards(function, first_id)
    else:
        rewrite_to_warp_ids(function, thread.block_size)
    expand_switches(function)
    flow = read_flow(function)
    split_edges(flow)
    plan = plan_block(flow, thread)
    types = "!llvm.ptr {llvm.nonnull}, !llvm.ptr {llvm.nonnull}"
    added = build.declare_function(module, symbol, types)
    debug = DebugInfo(added, debug_name, function.location) if debug_name is not None else None
    writer = _Writer(flow, plan, thread, bounds, added, function.location, debug)
    writer.write()
    build.keep_internal(added)
    return writer.thread_bytes


class _Writer:
    def __init__(
        self,
        flow: Flow,
        plan: BlockPlan,
        thread: ThreadFunction,
        bounds: Bounds,
        function: Any,
        location: Any,
        debug: DebugInfo | None,
    ) -> None:
        self._flow = flow
        self._plan = plan
        self._thread = thread
        self._bounds = bounds
        self._users = users_of(flow)
        cursor = Cursor(function.operation.regions[0], location)
        self._frame = Frame(flow, self._lay_out(), cursor, debug)

    @property
    def thread_bytes(self) -> int:
        slots = WARP_SLOTS // WARP if uses_slots(self._flow) else 0
        return slots + self._frame.slots.bytes

    # ---------------------------------------------------------------------------------------------
    # Slots

    def _lay_out(self) -> Slots:
        slots = Slots()
        leaf_of: dict[Block, Any] = {}
        for region in self._plan.plan.regions:
            leaf_of |= dict.fromkeys(region.blocks, region)
            nested = self._plan.nested.get(region)
            for inner in nested.plan.regions if nested else ():
                leaf_of |= dict.fromkeys(inner.blocks, inner)
        kept = lasting_allocas(
            self._flow,
            lambda v: any(leaf_of.get(b) is not leaf_of.get(v.block) for b in self._users[v]),
        )
        for node, size in kept.items():
            rounded = Size(round_up(size.bytes, size.alignment), size.alignment)
            slots.allocas[node.results[0]] = (slots.add(rounded), rounded)
        self._available = set(self._flow.arguments) | set(slots.allocas)
        plan = self._plan.plan
        again = recomputable(self._flow, lambda v: v in self._available or v in plan.shared)
        for value in crossing_values(plan, self._users, self._available):
            if value.node is None or not again(value):
                stored = build.memory_type(value.type)
                size = size_of(stored)
                slots.values[value] = slots.add(Size(size.bytes, build.slot_alignment(stored)))
        return slots

    # ---------------------------------------------------------------------------------------------
    # The function

    def write(self) -> None:
        pointer = build.pointer_type()
        with self._frame.cursor as cursor:
            self._entry = cursor.new_block(pointer, pointer)
            cursor.enter(self._entry)
            self._frame.parameters = load_parameters(
                self._flow, self._thread, *list(self._entry.arguments)
            )
            self._keep_on_stack()
            if self._frame.debug is not None:
                self._frame.debug.declare()
                self._frame.debug.set("block_id", self._frame.parameters.block_id)
                self._frame.debug.set("block_dim", self._frame.parameters.block_dim)
                self._frame.debug.set("grid_dim", self._frame.parameters.grid_dim)
            body = cursor.new_block()
            cursor.enter(body)
            plan = self._plan.plan
            columns = build.known_number(self._frame.parameters.block_dim[0])
            group = BlockGroup(
                lambda dimension, ids: (None, self._count(dimension, ids)),
                None if self._bounds[0] else columns,
            )
            values = {
                argument: value
                for argument, value in self._frame.parameters.arguments.items()
                if argument not in self._frame.thread_values
            }
            self._write_plan(
                Level(
                    plan,
                    lambda do: group.for_each(cursor, do),
                    values,
                    recomputable(self._flow, lambda v: v in self._available or v in plan.shared),
                )
            )
            build.return_values()
            cursor.enter(self._entry)
            build.jump(body)

    def _keep_on_stack(self) -> None:
        for node in allocas(self._flow):
            count = node.operands[0].node
            is_known = count is not None and count.name == "llvm.mlir.constant"
            if node.results[0] not in self._frame.slots.allocas and count is not None and is_known:
                self._frame.stack[node.results[0]] = clone(node, [clone(count, []).result]).result

    def _count(self, dimension: int, ids: ThreadIds) -> Any:
        """The number of threads along a dimension that have work, given the `ids` of the outer
        dimensions."""
        count = self._frame.parameters.block_dim[dimension]
        if not self._bounds[dimension]:
            return count
        arguments: dict[Value, Any] = dict(self._frame.parameters.arguments)
        for name, value in zip("xyz", (ids.x, ids.y, ids.z), strict=True):
            arguments[self._frame.context[f"thread_id.{name}"]] = value
        numbered = {
            number: arguments[argument]
            for number, argument in enumerate(self._flow.arguments)
            if argument in arguments
        }
        for bound in self._bounds[dimension]:
            count = bound.build_count(count, numbered)
        return count

    # ---------------------------------------------------------------------------------------------
    # Plans

    def _write_plan(self, level: Level) -> None:
        """Builds the regions of a plan from the cursor on, and the group's code between them."""
        cursor = self._frame.cursor
        blocks: dict[Block, Any] = {}
        for region in level.plan.regions:
            own = self._group_arguments(region, level)
            blocks[region.head] = cursor.new_block(*[argument.type for argument in own])
        behind = cursor.new_block()
        build.jump(blocks[level.plan.regions[0].head])
        for region in level.plan.regions:
            cursor.enter(blocks[region.head])
            own = self._group_arguments(region, level)
            level.values |= dict(zip(own, blocks[region.head].arguments, strict=True))
            self._write_shared(region, level)
            nested = self._plan.nested.get(region)
            if nested is not None:
                self._write_nested(region, nested, level)
            else:
                self._write_threads(region, level)
            if region.is_last:
                build.jump(behind)
            elif region.condition is not None:
                then, other = (blocks[edge.target] for edge in region.edges)
                build.branch(level.values[region.condition], then, other)
            else:
                edge = region.edges[0]
                build.jump(blocks[edge.target], self._group_values(edge, level))
        cursor.enter(behind)

    def _group_arguments(self, region: ParallelRegion, level: Level) -> list[Value]:
        """The arguments of a region's head that have one value for the group."""
        if region is level.plan.regions[0]:
            return []
        return [argument for argument in region.head.arguments if argument in level.plan.shared]

    def _group_values(self, edge: Any, level: Level) -> list[Any]:
        return [
            level.values[value]
            for argument, value in zip(edge.target.arguments, edge.values, strict=True)
            if argument in level.plan.shared
        ]

    def _write_shared(self, region: ParallelRegion, level: Level) -> None:
        """Builds the operations of a region that the group executes once."""
        for block in region.straight:
            if block is not region.head:
                for number, argument in enumerate(block.arguments):
                    if argument in level.plan.shared:
                        source = self._incoming(block, number)
                        level.values[argument] = level.values[source]
            for node in block.nodes:
                if is_shared(node, level) and node.results[0] not in level.values:
                    with node.pattern.location:
                        results = clone(node, [level.values[v] for v in node.operands]).results
                    level.values |= dict(zip(node.results, results, strict=True))

    def _incoming(self, block: Block, number: int) -> Value:
        """The value of an argument that gets the same value from every predecessor."""
        for other in self._flow.blocks:
            for edge in other.edges:
                if edge.target is block:
                    return edge.values[number]
        raise AssertionError("a block that nothing leads to")

    def _write_nested(self, region: ParallelRegion, nested: Nested, outer: Level) -> None:
        cursor = self._frame.cursor
        if nested.kind is GroupKind.WARP:
            warps = build.divide(self._frame.parameters.padded, build.number(WARP))

            def run_warp(warp: Any) -> None:
                group = WarpGroup(self._frame.parameters, warp)
                self._write_group(nested, outer, group, WARP)

            cursor.loop(warps, run_warp)
            return
        zero = build.number(0)

        def along_z(z: Any) -> None:
            ids = ThreadIds(zero, zero, z)
            cursor.loop(self._count(1, ids), lambda y: self._write_rows(nested, outer, y, z))

        cursor.loop(self._count(2, ThreadIds(zero, zero, zero)), along_z)

    def _write_rows(self, nested: Nested, outer: Level, y: Any, z: Any) -> None:
        """Builds one row of threads: groups of a constant width, and the remainder."""
        cursor, width = self._frame.cursor, nested.width
        count = self._count(0, ThreadIds(build.number(0), y, z))
        known = build.known_number(count)
        rest = build.remainder(count, build.number(width))
        if known is None:
            # A negative count, from a bound that no thread satisfies, has no remainder either.
            rest = create(
                "llvm.intr.smax",
                [
                    create("llvm.srem", [count, build.number(width)], [count.type]).result,
                    build.number(0),
                ],
                [count.type],
            ).result
        whole = (
            build.number(known - known % width)
            if known is not None
            else build.integer_op("sub", count, rest)
        )

        def run(x: Any, threads: Any) -> None:
            first = ThreadIds(x, y, z)
            group = RowGroup(self._frame.parameters, first, threads, width)
            self._write_group(nested, outer, group, width)

        if known != 0 and build.known_number(whole) != 0:
            cursor.loop(whole, lambda x: run(x, build.number(width)), step=width)
        if build.known_number(rest) != 0:
            # It runs at most once; as a loop, it needs no code for a branch.
            is_some = build.compare(build.SGT, rest, build.number(0))
            once = unary("llvm.zext", is_some, build.i64())
            cursor.loop(once, lambda _: run(whole, rest))

    def _write_group(
        self, nested: Nested, outer: Level, group: WarpGroup | RowGroup, width: int
    ) -> None:
        """Builds the regions that one warp or row runs."""
        plan = nested.plan
        values = dict(outer.values)
        available = self._available | set(plan.shared)
        level = Level(
            plan,
            lambda do: group.for_each(self._frame.cursor, do),
            values,
            recomputable(self._flow, lambda v: v in available),
            is_within=True,
        )
        self._bring_in(level, outer, group.first)
        for value in crossing_values(plan, self._users, self._available):
            if value not in self._frame.slots.values and (
                value.node is None or not level.is_recomputable(value)
            ):
                level.lane_slots[value] = self._lane_slot(value, width)
        self._write_plan(level)

    def _bring_in(self, level: Level, outer: Level, first: ThreadIds) -> None:
        """Values from outside that are uniform in the group: those of its first thread."""
        inside = {block for region in level.plan.regions for block in region.blocks}
        entry = level.plan.regions[0].head
        needed: dict[Value, None] = {}
        for region in level.plan.regions:
            for block in region.straight:
                if block is not region.head:
                    needed |= {
                        self._incoming(block, number): None
                        for number, argument in enumerate(block.arguments)
                        if argument in level.plan.shared
                    }
                for node in block.nodes:
                    if is_shared(node, level):
                        needed |= dict.fromkeys(node.operands)
            needed |= {region.condition: None} if region.condition is not None else {}
            for edge in region.edges:
                needed |= {
                    value: None
                    for argument, value in zip(edge.target.arguments, edge.values, strict=True)
                    if argument in level.plan.shared
                }
        leaf = ThreadRun(self._frame, outer, first, None, None)
        for value in needed:
            is_outside = value.block not in inside or value in entry.arguments
            if is_outside and value in level.plan.shared and value not in level.values:
                level.values[value] = leaf.value(value)

    def _lane_slot(self, value: Value, width: int) -> Any:
        """Allocates an array on the stack with a value for each thread of a group."""
        stored = build.memory_type(value.type)
        here = ir.InsertionPoint(self._entry)
        with here:
            return build.allocate(stored, width, max(SLOT_ALIGNMENT, build.slot_alignment(stored)))

    # ---------------------------------------------------------------------------------------------
    # Threads

    def _write_threads(self, region: ParallelRegion, level: Level) -> None:
        """Builds the loop over a group's threads that runs one region."""
        if not self._has_work(region, level):
            return
        guard = None if level.is_within else self._find_guard(region, level)
        for_each = level.for_each if guard is None else self._within(guard, level)
        for_each(
            lambda ids, lane, marks: ThreadRun(self._frame, level, ids, lane, marks).write(
                region, guard
            )
        )

    def _find_guard(self, region: ParallelRegion, level: Level) -> Guard | None:
        dimensions = {self._frame.context[f"thread_id.{d}"]: n for n, d in enumerate("xyz")}
        if self._thread.block_size is not None and self._thread.block_size[1:] == (1, 1):
            dimensions[self._frame.context["linear"]] = 0
        return find_guard(
            region,
            dimensions,
            level.values.__contains__,
            lambda value: self._has_slot(value, level),
        )

    def _within(self, guard: Guard, level: Level) -> Callable[[Body], None]:
        """The loop over the threads of a block that pass a guard."""

        def range_of(dimension: int, ids: ThreadIds) -> tuple[Any, Any]:
            first, end = None, self._count(dimension, ids)
            for limit in guard.limits:
                if limit.dimension == dimension:
                    start = build.number(0) if first is None else first
                    first, end = limit.narrow(start, end, level.values[limit.value])
            return first, end

        group = BlockGroup(range_of)
        return lambda do: group.for_each(self._frame.cursor, do)

    def _has_work(self, region: ParallelRegion, level: Level) -> bool:
        for block in region.blocks:
            if block.is_dead_end:
                return True
            for node in block.nodes:
                if not is_shared(node, level):
                    return True
                if any(v in self._frame.slots.values for v in node.results):
                    return True
            for edge in block.edges:
                if any(self._has_slot(argument, level) for argument in edge.target.arguments):
                    return True
        return False

    def _has_slot(self, value: Value, level: Level) -> bool:
        return value in self._frame.slots.values or value in level.lane_slots
