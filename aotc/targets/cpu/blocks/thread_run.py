"""The body of the loop over a group's threads: one thread's run of one parallel region."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aotc.ops import create
from aotc.targets.cpu import build
from aotc.targets.cpu.blocks.cloning import clone, in_order
from aotc.targets.cpu.blocks.flow import Block, Edge, Node, Value
from aotc.targets.cpu.blocks.frame import Frame, Level, is_shared
from aotc.targets.cpu.blocks.parallel_regions import ParallelRegion
from aotc.targets.cpu.blocks.prologue import ThreadIds, linear_of, thread_value
from aotc.targets.cpu.blocks.region_guards import Guard
from aotc.targets.cpu.sizes import size_of


class ThreadRun:
    """Builds one thread's run. `ids` are the thread's ids, `marks` the access group of the loop."""

    def __init__(self, frame: Frame, level: Level, ids: ThreadIds, lane: Any, marks: Any) -> None:
        self._frame = frame
        self._level = level
        self._ids = ids
        self._lane = lane
        self._marks = marks
        self._linear: Any = None
        self._guard: Guard | None = None
        self._values: dict[Value, Any] = {}

    def value(self, value: Value) -> Any:
        """A value that was computed before this region, or depends only on the thread."""
        frame, level = self._frame, self._level
        if value in self._values:
            return self._values[value]
        if value in level.values:
            return level.values[value]
        if value in frame.thread_values:
            name = frame.thread_values[value]
            slots = level.values[frame.context["block_slots"]]
            made = thread_value(name, self._ids, frame.parameters, slots)
        elif value in frame.stack:
            return frame.stack[value]
        elif value in frame.slots.allocas:
            place, size = frame.slots.allocas[value]
            made = frame.slot_address(place, size.bytes, self._own_number())
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
            self._linear = linear_of(self._ids, self._frame.parameters)
        return self._linear

    def _slot(self, value: Value) -> Any:
        """The address of the thread's slot for a value; None if it has no slot."""
        frame = self._frame
        if value in frame.slots.values:
            size = size_of(build.memory_type(value.type)).bytes
            return frame.slot_address(frame.slots.values[value], size, self._own_number())
        if value in self._level.lane_slots and self._lane is not None:
            size = size_of(build.memory_type(value.type)).bytes
            offset = build.multiply(self._lane, build.number(size))
            return build.at(self._level.lane_slots[value], offset)
        return None

    def write(self, region: ParallelRegion, guard: Guard | None = None) -> None:
        """Builds the blocks of `region`. The loop does not run threads beyond the limits of
        `guard`."""
        self._guard = guard
        if self._frame.debug is not None:
            self._frame.debug.set("thread_id", [self._ids.x, self._ids.y, self._ids.z])
        level, cursor = self._level, self._frame.cursor
        order = in_order(region.head, region.blocks)
        for block in order:
            self._begin_block(block, region)
        stack = self._save_stack(region)
        arguments = self._head_arguments(region)
        own = {block: [a for a in block.arguments if a not in level.values] for block in order}
        own[region.head] = arguments
        blocks = {block: cursor.new_block(*[a.type for a in own[block]]) for block in order}
        behind = cursor.new_block()
        initial = [self.value(argument) for argument in arguments]
        self._keep_shared(region)
        build.jump(blocks[region.head], initial)
        for block in order:
            cursor.enter(blocks[block])
            self._values |= dict(zip(own[block], blocks[block].arguments, strict=True))
            # Also for a head that a loop in the region leads back to: each iteration has new
            # values.
            for argument in own[block]:
                self._keep(argument, self._values[argument])
            self._write_block(block, region, own, blocks, behind)
        cursor.enter(behind)
        if stack is not None:
            create("llvm.intr.stackrestore", [stack])

    def _head_arguments(self, region: ParallelRegion) -> list[Value]:
        """The arguments of a region's head that get new values by a loop inside of the region."""
        has_loop = any(
            edge.target is region.head and not _leaves(edge, region)
            for block in region.blocks
            for edge in block.edges
        )
        if not has_loop:
            return []
        return [a for a in region.head.arguments if a not in self._level.values]

    def _begin_block(self, block: Block, region: ParallelRegion) -> None:
        """Makes the values available that the block uses, and computes addresses of slots that it
        writes."""
        for value in block.uses():
            self._bring_in(value, region)
        for edge in block.edges:
            if _leaves(edge, region):
                for argument in edge.target.arguments:
                    self._prepare(argument)
        for node in block.nodes:
            for result in node.results:
                self._prepare(result)

    def _keep_shared(self, region: ParallelRegion) -> None:
        """Stores uniform values that another region may need for each thread."""
        level = self._level
        for block in region.straight:
            if block is not region.head:
                for argument in block.arguments:
                    if argument in level.values:
                        self._keep(argument, level.values[argument])
            for node in block.nodes:
                if is_shared(node, level):
                    for result in node.results:
                        self._keep(result, level.values[result])

    def _bring_in(self, value: Value, region: ParallelRegion) -> None:
        frame = self._frame
        is_inside = value.block in region.blocks and value not in region.head.arguments
        # The address of an alloca is valid in every block, too.
        if not is_inside or value in frame.stack or value in frame.slots.allocas:
            self.value(value)

    def _prepare(self, value: Value) -> None:
        """Computes what the addresses of slots depend on before the first block, for all blocks."""
        if value in self._frame.slots.values:
            self._own_number()

    def _save_stack(self, region: ParallelRegion) -> Any:
        """Saves the stack pointer if the region has allocas of unknown size, which are freed at the
        end of the thread's turn."""
        frame = self._frame
        for block in region.blocks:
            for node in block.nodes:
                if node.name == "llvm.alloca" and not (
                    node.results[0] in frame.stack or node.results[0] in frame.slots.allocas
                ):
                    pointer = build.pointer_type()
                    return create("llvm.intr.stacksave", results=[pointer]).result
        return None

    def _write_block(
        self,
        block: Block,
        region: ParallelRegion,
        own: Mapping[Block, list[Value]],
        blocks: Mapping[Block, Any],
        behind: Any,
    ) -> None:
        frame, level = self._frame, self._level
        for node in block.nodes:
            is_alloca = node.results and (
                node.results[0] in frame.stack or node.results[0] in frame.slots.allocas
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
            self._write_end(block, region, own, blocks, behind)

    def _write_end(
        self,
        block: Block,
        region: ParallelRegion,
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
            if not _leaves(edge, region):
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
        """Whether a load or store is known not to access the thread's own stack."""
        if node.name == "llvm.load":
            address = node.operands[0]
        elif node.name == "llvm.store":
            address = node.operands[1]
        else:
            return False
        while True:
            if address in self._frame.flow.arguments or address in self._frame.slots.allocas:
                return True
            if address.node is None:
                return False
            if address.node.name == "llvm.mlir.addressof":
                return True
            if address.node.name != "llvm.getelementptr":
                return False
            address = address.node.operands[0]


def _leaves(edge: Edge, region: ParallelRegion) -> bool:
    """Whether a thread that takes `edge` has finished its turn."""
    return edge.target not in region.blocks or any(edge is other for other in region.edges)
