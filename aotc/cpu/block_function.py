"""A `Flow` and its `BlockPlan` → the function that runs one block, for the runtime.

    void run(void *const *parameters, const aotc_cpu_block *block)

It runs the parts of the plan in loops over the threads; what the block, the warp or the row
computes together stands between these loops. A value that one part makes and another uses is
computed again there if that is cheap; else it has a slot for every thread: in the block's scratch
memory, or, within a warp or a row, on the stack, where LLVM makes registers of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aotc.cpu import build
from aotc.cpu.block_plan import BlockPlan, GroupKind, Nested, plan_block
from aotc.cpu.bounds import Bound, take_guards
from aotc.cpu.cloning import clone, in_order, recomputable
from aotc.cpu.debug import DebugInfo
from aotc.cpu.flow import (
    Block,
    Edge,
    Flow,
    Node,
    Value,
    expand_switches,
    read_flow,
    split_edges,
)
from aotc.cpu.groups import BlockGroup, Body, Cursor, RowGroup, WarpGroup
from aotc.cpu.part_guards import Guard, find_guard
from aotc.cpu.parts import Part, Plan
from aotc.cpu.prologue import (
    THREAD_VALUES,
    WARP_SLOTS,
    ThreadIds,
    context_values,
    linear_of,
    load_parameters,
    thread_value,
    uses_slots,
)
from aotc.cpu.sizes import Size, round_up, size_of
from aotc.cpu.synchronize import WARP_SIZE
from aotc.cpu.thread_function import CONTEXT, ThreadFunction
from aotc.cpu.thread_memory import allocas, lasting_allocas
from aotc.mlir import ir
from aotc.ops import create

# Slots of a block begin at multiples of this: a whole vector of the widest machine.
_SLOT_ALIGNMENT = 64

Bounds = dict[int, list[Bound]]


def add_block_function(
    module: Any,
    symbol: str,
    function: Any,
    thread: ThreadFunction,
    *,
    has_syncs: bool,
    debug_name: str | None = None,
) -> int:
    """Appends the llvm.func @symbol to `module`; returns the scratch memory of a thread in bytes.

    `function`, the thread function, is taken to pieces. Raises NotTogetherError where threads
    may part ways before a synchronization, DynamicAllocaError, UnknownSizeError. With
    `debug_name`, the kernel's, the function gets debug information.
    """
    first_id = len(function.regions[0].blocks[0].arguments) - len(CONTEXT)
    bounds: Bounds = {0: [], 1: [], 2: []}
    if not has_syncs:
        bounds = take_guards(function, first_id)
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


@dataclass
class _Slots:
    """Where values wait for their next part: offsets in the block's memory, per thread.

    An offset times the number of threads is where a value's array starts. An alloca's memory is
    one thread's behind the other's.
    """

    values: dict[Value, int] = field(default_factory=dict)
    allocas: dict[Value, tuple[int, Size]] = field(default_factory=dict)
    bytes: int = 0

    def add(self, size: Size) -> int:
        place = round_up(self.bytes, min(size.alignment, _SLOT_ALIGNMENT))
        self.bytes = place + round_up(size.bytes, 1)
        return place


@dataclass
class _Level:
    """What parts of one plan see: values that the group has, and slots on the stack."""

    plan: Plan
    for_each: Callable[[Body], None]
    values: dict[Value, Any]
    is_recomputable: Callable[[Value], bool]
    is_within: bool = False  # of a part of another plan
    lane_slots: dict[Value, Any] = field(default_factory=dict)


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
        self._debug = debug
        self._flow = flow
        self._plan = plan
        self._thread = thread
        self._bounds = bounds
        self._region = function.operation.regions[0]
        self._location = location
        self._context = context_values(flow)
        self._thread_values = {self._context[name]: name for name in THREAD_VALUES}
        self._users = _users(flow)
        self._slots = self._lay_out()
        self._stack: dict[Value, Any] = {}  # allocas that threads use one after the other

    @property
    def thread_bytes(self) -> int:
        slots = WARP_SLOTS // WARP_SIZE if uses_slots(self._flow) else 0
        return slots + round_up(self._slots.bytes, 1)

    # ---------------------------------------------------------------------------------------------
    # Slots

    def _lay_out(self) -> _Slots:
        slots = _Slots()
        leaf_of: dict[Block, Any] = {}
        for part in self._plan.plan.parts:
            leaf_of |= dict.fromkeys(part.blocks, part)
            nested = self._plan.nested.get(part)
            for inner in nested.plan.parts if nested else ():
                leaf_of |= dict.fromkeys(inner.blocks, inner)
        kept = lasting_allocas(
            self._flow,
            lambda v: any(leaf_of.get(b) is not leaf_of.get(v.block) for b in self._users[v]),
        )
        for node, size in kept.items():
            rounded = Size(round_up(size.bytes, size.alignment), size.alignment)
            slots.allocas[node.results[0]] = (slots.add(rounded), rounded)
        self._at_hand = set(self._flow.arguments) | set(slots.allocas)
        plan = self._plan.plan
        again = recomputable(self._flow, lambda v: v in self._at_hand or v in plan.shared)
        for value in _crossing(plan, self._users, self._at_hand):
            if value.node is None or not again(value):
                stored = build.memory_type(value.type)
                size = size_of(stored)
                slots.values[value] = slots.add(Size(size.bytes, build.slot_alignment(stored)))
        return slots

    def _slot_address(self, place: int, size: int, linear: Any) -> Any:
        parameters = self._parameters
        array = build.multiply(parameters.padded, build.number(place))
        start = build.at(parameters.memory, array)
        return build.at(start, build.multiply(linear, build.number(size)))

    # ---------------------------------------------------------------------------------------------
    # The function

    def write(self) -> None:
        pointer = build.pointer_type()
        with Cursor(self._region, self._location) as cursor:
            self._cursor = cursor
            self._entry = cursor.new_block(pointer, pointer)
            cursor.enter(self._entry)
            self._parameters = load_parameters(
                self._flow, self._thread, *list(self._entry.arguments)
            )
            self._keep_on_stack()
            if self._debug is not None:
                self._debug.declare()
                self._debug.set("block_id", self._parameters.block_id)
                self._debug.set("block_dim", self._parameters.block_dim)
                self._debug.set("grid_dim", self._parameters.grid_dim)
            body = cursor.new_block()
            cursor.enter(body)
            plan = self._plan.plan
            group = BlockGroup(lambda dimension, ids: (None, self._count(dimension, ids)))
            values = {
                argument: value
                for argument, value in self._parameters.arguments.items()
                if argument not in self._thread_values
            }
            self._write_plan(
                _Level(
                    plan,
                    lambda do: group.for_each(cursor, do),
                    values,
                    recomputable(self._flow, lambda v: v in self._at_hand or v in plan.shared),
                )
            )
            build.give_back()
            cursor.enter(self._entry)
            build.jump(body)

    def _keep_on_stack(self) -> None:
        for node in allocas(self._flow):
            count = node.operands[0].node
            is_known = count is not None and count.name == "llvm.mlir.constant"
            if node.results[0] not in self._slots.allocas and count is not None and is_known:
                self._stack[node.results[0]] = clone(node, [clone(count, []).result]).result

    def _count(self, dimension: int, ids: ThreadIds) -> Any:
        """How many threads of a dimension work; `ids` of those around it are known."""
        count = self._parameters.block_dim[dimension]
        if not self._bounds[dimension]:
            return count
        arguments: dict[Value, Any] = dict(self._parameters.arguments)
        for name, value in zip("xyz", (ids.x, ids.y, ids.z), strict=True):
            arguments[self._context[f"thread_id.{name}"]] = value
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

    def _write_plan(self, level: _Level) -> None:
        """Builds the parts of a plan from the cursor on, and what a group does between them."""
        cursor = self._cursor
        blocks: dict[Block, Any] = {}
        for part in level.plan.parts:
            own = self._group_arguments(part, level)
            blocks[part.head] = cursor.new_block(*[argument.type for argument in own])
        behind = cursor.new_block()
        build.jump(blocks[level.plan.parts[0].head])
        for part in level.plan.parts:
            cursor.enter(blocks[part.head])
            own = self._group_arguments(part, level)
            level.values |= dict(zip(own, blocks[part.head].arguments, strict=True))
            self._write_shared(part, level)
            nested = self._plan.nested.get(part)
            if nested is not None:
                self._write_nested(part, nested, level)
            else:
                self._write_threads(part, level)
            if part.is_last:
                build.jump(behind)
            elif part.condition is not None:
                then, other = (blocks[edge.target] for edge in part.edges)
                build.branch(level.values[part.condition], then, other)
            else:
                edge = part.edges[0]
                build.jump(blocks[edge.target], self._group_values(edge, level))
        cursor.enter(behind)

    def _group_arguments(self, part: Part, level: _Level) -> list[Value]:
        """The arguments of a part's head that the group has."""
        if part is level.plan.parts[0]:
            return []
        return [argument for argument in part.head.arguments if argument in level.plan.shared]

    def _group_values(self, edge: Any, level: _Level) -> list[Any]:
        return [
            level.values[value]
            for argument, value in zip(edge.target.arguments, edge.values, strict=True)
            if argument in level.plan.shared
        ]

    def _write_shared(self, part: Part, level: _Level) -> None:
        """Builds what the group computes once of a part."""
        for block in part.straight:
            if block is not part.head:
                for number, argument in enumerate(block.arguments):
                    if argument in level.plan.shared:
                        source = self._incoming(block, number)
                        level.values[argument] = level.values[source]
            for node in block.nodes:
                if self._is_shared(node, level) and node.results[0] not in level.values:
                    with node.pattern.location:
                        results = clone(node, [level.values[v] for v in node.operands]).results
                    level.values |= dict(zip(node.results, results, strict=True))

    def _is_shared(self, node: Node, level: _Level) -> bool:
        return bool(node.results) and all(v in level.plan.shared for v in node.results)

    def _incoming(self, block: Block, number: int) -> Value:
        """What an argument is that gets the same value on every way."""
        for other in self._flow.blocks:
            for edge in other.edges:
                if edge.target is block:
                    return edge.values[number]
        raise AssertionError("a block that nothing leads to")

    def _write_nested(self, part: Part, nested: Nested, outer: _Level) -> None:
        cursor = self._cursor
        if nested.kind is GroupKind.WARP:
            warps = build.divide(self._parameters.padded, build.number(WARP_SIZE))

            def run_warp(warp: Any) -> None:
                group = WarpGroup(self._parameters, warp)
                self._write_group(nested, outer, group, WARP_SIZE)

            cursor.loop(warps, run_warp)
            return
        zero = build.number(0)

        def along_z(z: Any) -> None:
            ids = ThreadIds(zero, zero, z)
            cursor.loop(self._count(1, ids), lambda y: self._write_rows(nested, outer, y, z))

        cursor.loop(self._count(2, ThreadIds(zero, zero, zero)), along_z)

    def _write_rows(self, nested: Nested, outer: _Level, y: Any, z: Any) -> None:
        """One row of threads: whole groups of a constant width, and the rest."""
        cursor, width = self._cursor, nested.width
        count = self._count(0, ThreadIds(build.number(0), y, z))
        known = build.known_number(count)
        rest = build.remainder(count, build.number(width))
        if known is None:
            # A negative count, of a bound that nobody meets, has no remainder either.
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
            group = RowGroup(self._parameters, first, threads, width)
            self._write_group(nested, outer, group, width)

        if known != 0 and build.known_number(whole) != 0:
            cursor.loop(whole, lambda x: run(x, build.number(width)), step=width)
        if build.known_number(rest) != 0:
            # At most once; as a loop, it needs no branch of its own.
            is_some = build.compare(build.SGT, rest, build.number(0))
            once = create("llvm.zext", [is_some], [build.i64()]).result
            cursor.loop(once, lambda _: run(whole, rest))

    def _write_group(
        self, nested: Nested, outer: _Level, group: WarpGroup | RowGroup, width: int
    ) -> None:
        """The parts that one warp or row runs."""
        plan = nested.plan
        values = dict(outer.values)
        at_hand = self._at_hand | set(plan.shared)
        level = _Level(
            plan,
            lambda do: group.for_each(self._cursor, do),
            values,
            recomputable(self._flow, lambda v: v in at_hand),
            is_within=True,
        )
        self._bring_in(level, outer, group.first)
        for value in _crossing(plan, self._users, self._at_hand):
            if value not in self._slots.values and (
                value.node is None or not level.is_recomputable(value)
            ):
                level.lane_slots[value] = self._lane_slot(value, width)
        self._write_plan(level)

    def _bring_in(self, level: _Level, outer: _Level, first: ThreadIds) -> None:
        """Values from outside that the group has: those of its first thread."""
        inside = {block for part in level.plan.parts for block in part.blocks}
        entry = level.plan.parts[0].head
        needed: dict[Value, None] = {}
        for part in level.plan.parts:
            for block in part.straight:
                for node in block.nodes:
                    if self._is_shared(node, level):
                        needed |= dict.fromkeys(node.operands)
            needed |= {part.condition: None} if part.condition is not None else {}
            for edge in part.edges:
                needed |= {
                    value: None
                    for argument, value in zip(edge.target.arguments, edge.values, strict=True)
                    if argument in level.plan.shared
                }
        leaf = _Leaf(self, outer, first, None, None)
        for value in needed:
            is_outside = value.block not in inside or value in entry.arguments
            if is_outside and value in level.plan.shared and value not in level.values:
                level.values[value] = leaf.value(value)

    def _lane_slot(self, value: Value, width: int) -> Any:
        """An array of a value for each thread of a group, on the stack."""
        stored = build.memory_type(value.type)
        here = ir.InsertionPoint(self._entry)
        with here:
            return build.allocate(stored, width, max(_SLOT_ALIGNMENT, build.slot_alignment(stored)))

    # ---------------------------------------------------------------------------------------------
    # Threads

    def _write_threads(self, part: Part, level: _Level) -> None:
        """The loop over a group's threads that runs one part."""
        if not self._has_work(part, level):
            return
        guard = None if level.is_within else self._find_guard(part, level)
        for_each = level.for_each if guard is None else self._within(guard, level)
        for_each(lambda ids, lane, marks: _Leaf(self, level, ids, lane, marks).write(part, guard))

    def _find_guard(self, part: Part, level: _Level) -> Guard | None:
        dimensions = {self._context[f"thread_id.{d}"]: n for n, d in enumerate("xyz")}
        if self._thread.block_size is not None and self._thread.block_size[1:] == (1, 1):
            dimensions[self._context["linear"]] = 0
        return find_guard(
            part,
            dimensions,
            level.values.__contains__,
            lambda value: self._has_slot(value, level),
        )

    def _within(self, guard: Guard, level: _Level) -> Callable[[Body], None]:
        """The loop over the threads of a block that a guard lets through."""

        def range_of(dimension: int, ids: ThreadIds) -> tuple[Any, Any]:
            first, end = None, self._count(dimension, ids)
            for limit in guard.limits:
                if limit.dimension == dimension:
                    start = build.number(0) if first is None else first
                    first, end = limit.narrow(start, end, level.values[limit.value])
            return first, end

        group = BlockGroup(range_of)
        return lambda do: group.for_each(self._cursor, do)

    def _has_work(self, part: Part, level: _Level) -> bool:
        for block in part.blocks:
            if block.is_dead_end:
                return True
            for node in block.nodes:
                if not self._is_shared(node, level):
                    return True
                if any(v in self._slots.values for v in node.results):
                    return True
            for edge in block.edges:
                if any(self._has_slot(argument, level) for argument in edge.target.arguments):
                    return True
        return False

    def _has_slot(self, value: Value, level: _Level) -> bool:
        return value in self._slots.values or value in level.lane_slots


class _Leaf:
    """One thread's run of one part, in the body of the loop over a group's threads."""

    def __init__(
        self, writer: _Writer, level: _Level, ids: ThreadIds, lane: Any, marks: Any
    ) -> None:
        self._writer = writer
        self._level = level
        self._ids = ids
        self._lane = lane
        self._marks = marks
        self._linear: Any = None
        self._guard: Guard | None = None
        self._values: dict[Value, Any] = {}

    def value(self, value: Value) -> Any:
        """A value that was made before this part, or that depends on the thread alone."""
        writer, level = self._writer, self._level
        if value in self._values:
            return self._values[value]
        if value in level.values:
            return level.values[value]
        if value in writer._thread_values:
            name = writer._thread_values[value]
            slots = level.values[writer._context["block_slots"]]
            made = thread_value(name, self._ids, writer._parameters, slots)
        elif value in writer._stack:
            return writer._stack[value]
        elif value in writer._slots.allocas:
            place, size = writer._slots.allocas[value]
            made = writer._slot_address(place, size.bytes, self._own_number())
        elif self._slot(value) is not None:
            made = build.load_value(self._slot(value), value.type, group=self._marks)
        elif value.node is not None:
            operands = [self.value(operand) for operand in value.node.operands]
            results = clone(value.node, operands).results
            self._values |= dict(zip(value.node.results, results, strict=True))
            return self._values[value]
        else:
            raise AssertionError(f"a value of type {value.type} without a place")
        self._values[value] = made
        return made

    def _own_number(self) -> Any:
        if self._linear is None:
            self._linear = linear_of(self._ids, self._writer._parameters)
        return self._linear

    def _slot(self, value: Value) -> Any:
        """The address of the thread's slot for a value, or None."""
        writer = self._writer
        if value in writer._slots.values:
            size = size_of(build.memory_type(value.type)).bytes
            return writer._slot_address(writer._slots.values[value], size, self._own_number())
        if value in self._level.lane_slots and self._lane is not None:
            size = size_of(build.memory_type(value.type)).bytes
            offset = build.multiply(self._lane, build.number(size))
            return build.at(self._level.lane_slots[value], offset)
        return None

    def write(self, part: Part, guard: Guard | None = None) -> None:
        """Builds the blocks of `part`; threads beyond the limits of `guard` do not come here."""
        self._guard = guard
        if self._writer._debug is not None:
            self._writer._debug.set("thread_id", [self._ids.x, self._ids.y, self._ids.z])
        writer, level, cursor = self._writer, self._level, self._writer._cursor
        order = in_order(part.head, part.blocks)
        for block in order:
            for value in block.uses():
                self._bring_in(value, part)
            for edge in block.edges:
                if _leaves(edge, part):
                    for argument in edge.target.arguments:
                        self._prepare(argument)
            for node in block.nodes:
                for result in node.results:
                    self._prepare(result)
        stack = self._save_stack(part)
        arguments = self._head_arguments(part)
        own = {block: [a for a in block.arguments if a not in level.values] for block in order}
        own[part.head] = arguments
        blocks = {block: cursor.new_block(*[a.type for a in own[block]]) for block in order}
        behind = cursor.new_block()
        initial = [self.value(argument) for argument in arguments]
        for block in part.straight:
            for node in block.nodes:
                if writer._is_shared(node, level):
                    for result in node.results:
                        self._keep(result, level.values[result])
        build.jump(blocks[part.head], initial)
        for block in order:
            cursor.enter(blocks[block])
            self._values |= dict(zip(own[block], blocks[block].arguments, strict=True))
            if block is not part.head:
                for argument in own[block]:
                    self._keep(argument, self._values[argument])
            self._write_block(block, part, own, blocks, behind)
        cursor.enter(behind)
        if stack is not None:
            create("llvm.intr.stackrestore", [stack])

    def _head_arguments(self, part: Part) -> list[Value]:
        """The arguments of a part's head that a loop inside of the part gives new values."""
        has_loop = any(
            edge.target is part.head and not _leaves(edge, part)
            for block in part.blocks
            for edge in block.edges
        )
        if not has_loop:
            return []
        return [a for a in part.head.arguments if a not in self._level.values]

    def _bring_in(self, value: Value, part: Part) -> None:
        is_inside = value.block in part.blocks and value not in part.head.arguments
        if not is_inside or value in self._writer._stack:
            self.value(value)

    def _prepare(self, value: Value) -> None:
        """Addresses of slots are worked out in front: their parts serve every block."""
        if value in self._writer._slots.values:
            self._own_number()

    def _save_stack(self, part: Part) -> Any:
        """Memory of unknown size is freed when the thread's turn ends."""
        writer = self._writer
        for block in part.blocks:
            for node in block.nodes:
                if node.name == "llvm.alloca" and not (
                    node.results[0] in writer._stack or node.results[0] in writer._slots.allocas
                ):
                    pointer = build.pointer_type()
                    return create("llvm.intr.stacksave", results=[pointer]).result
        return None

    def _write_block(
        self,
        block: Block,
        part: Part,
        own: Mapping[Block, list[Value]],
        blocks: Mapping[Block, Any],
        behind: Any,
    ) -> None:
        writer, level = self._writer, self._level
        for node in block.nodes:
            is_alloca = node.results and (
                node.results[0] in writer._stack or node.results[0] in writer._slots.allocas
            )
            if is_alloca or (node.results and node.results[0] in level.values):
                continue
            with node.pattern.location:
                operation = clone(node, [self.value(v) for v in node.operands])
            if self._marks is not None and self._is_shared_access(node):
                operation.attributes["access_groups"] = self._marks
            for value, result in zip(node.results, operation.results, strict=True):
                self._values[value] = result
                self._keep(value, result)
        with block.location:
            self._write_end(block, part, own, blocks, behind)

    def _write_end(
        self,
        block: Block,
        part: Part,
        own: Mapping[Block, list[Value]],
        blocks: Mapping[Block, Any],
        behind: Any,
    ) -> None:
        if block.is_dead_end:
            build.unreachable()
            return
        ways = []
        guard = self._guard
        is_decided = guard is not None and guard.block is block and guard.is_whole
        for edge in [guard.onward] if guard is not None and is_decided else block.edges:
            if not _leaves(edge, part):
                given = dict(zip(edge.target.arguments, edge.values, strict=True))
                values = [self.value(given[argument]) for argument in own[edge.target]]
                ways.append((blocks[edge.target], values))
            else:
                incoming = [self.value(value) for value in edge.values]
                for argument, value in zip(edge.target.arguments, incoming, strict=True):
                    self._keep(argument, value)
                ways.append((behind, []))
        if not ways:
            build.jump(behind)
        elif block.condition is None or len(ways) == 1:
            build.jump(*ways[0])
        elif all(target is behind for target, _ in ways):
            build.jump(behind)
        else:
            (then, then_values), (other, other_values) = ways
            build.branch(self.value(block.condition), then, other, then_values, other_values)

    def _keep(self, value: Value, result: Any) -> None:
        address = self._slot(value)
        if address is not None:
            build.store_value(result, address, group=self._marks)

    def _is_shared_access(self, node: Node) -> bool:
        """Whether a load or store is surely of memory that is not the thread's own stack."""
        if node.name == "llvm.load":
            address = node.operands[0]
        elif node.name == "llvm.store":
            address = node.operands[1]
        else:
            return False
        while True:
            if address in self._writer._flow.arguments or address in self._writer._slots.allocas:
                return True
            if address.node is None:
                return False
            if address.node.name == "llvm.mlir.addressof":
                return True
            if address.node.name != "llvm.getelementptr":
                return False
            address = address.node.operands[0]


def _leaves(edge: Edge, part: Part) -> bool:
    """Whether a thread that takes `edge` has done its turn."""
    return edge.target not in part.blocks or any(edge is other for other in part.edges)


def _users(flow: Flow) -> dict[Value, set[Block]]:
    """The blocks that use each value."""
    users: dict[Value, set[Block]] = {}
    for block in flow.blocks:
        for value in (*block.arguments, *(r for node in block.nodes for r in node.results)):
            users.setdefault(value, set())
        for value in block.uses():
            users.setdefault(value, set()).add(block)
    return users


def _crossing(plan: Plan, users: Mapping[Value, set[Block]], at_hand: set[Value]) -> list[Value]:
    """The values that threads carry from one part of a plan to another, in order."""
    part_of = {block: part for part in plan.parts for block in part.blocks}
    found: list[Value] = []
    for part in plan.parts:
        for block in sorted(part.blocks, key=lambda block: block.number):
            for argument in block.arguments:
                is_given = block is part.head and part is not plan.parts[0]
                if is_given or any(part_of.get(b, part) is not part for b in users[argument]):
                    found.append(argument)
            for node in block.nodes:
                for result in node.results:
                    if any(part_of.get(b, part) is not part for b in users[result]):
                        found.append(result)
    return [value for value in found if value not in plan.shared and value not in at_hand]
