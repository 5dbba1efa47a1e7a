"""A `Flow` → the function that runs one thread to its next synchronization, for the runtime.

    int32_t step(void *const *parameters, const aotc_cpu_block *block, int64_t thread,
                 int32_t state)

This works for any control flow. The function starts with a jump to the point where the thread
stopped, and values that live across a synchronization are kept in the thread's memory. The runtime
schedules the threads, and detects a barrier that some threads never reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from aotc.chips import WARP
from aotc.mlir import ir
from aotc.targets.cpu import build
from aotc.targets.cpu.blocks.cloning import clone, in_order, recomputable
from aotc.targets.cpu.blocks.debug import DebugInfo
from aotc.targets.cpu.blocks.flow import (
    Block,
    Flow,
    Node,
    Sync,
    Value,
    expand_switches,
    live_at_start,
    read_flow,
)
from aotc.targets.cpu.blocks.prologue import (
    THREAD_VALUES,
    context_values,
    ids_of,
    load_parameters,
    thread_value,
    uses_slots,
)
from aotc.targets.cpu.blocks.thread_memory import lasting_allocas
from aotc.targets.cpu.sizes import round_up, size_of
from aotc.targets.cpu.synchronize import WARP_SLOTS
from aotc.targets.cpu.thread_function import ThreadFunction

# Alignment of a thread's memory.
_THREAD_ALIGNMENT = 64


class StepFunction(Struct, frozen=True):
    """What the runtime must know of a step function: the bytes of a thread's memory, and its
    synchronizations by number."""

    thread_bytes: int
    syncs: tuple[Sync, ...]


class _Layout(Struct, frozen=True):
    """Offsets in a thread's memory: of values that live across synchronizations, and of allocas."""

    values: dict[Value, int]
    allocas: dict[Node, int]
    bytes: int


def add_step_function(
    module: Any,
    symbol: str,
    function: Any,
    thread: ThreadFunction,
    *,
    debug_name: str | None,
) -> StepFunction:
    """Appends the llvm.func @symbol to `module`. `function` is the thread function, which is only
    read.

    Raises DynamicAllocaError, UnknownSizeError. With `debug_name`, the name of the kernel, the
    function gets debug information.
    """
    expand_switches(function)
    flow = read_flow(function)
    types = "!llvm.ptr {llvm.nonnull}, !llvm.ptr {llvm.nonnull}, i64, i32"
    added = build.declare_function(module, symbol, types, "i32")
    debug = DebugInfo(added, debug_name, function.location) if debug_name is not None else None
    step = _Writer(flow, thread, added, function.location, debug).write()
    build.keep_internal(added)
    return step


class _Writer:
    def __init__(
        self,
        flow: Flow,
        thread: ThreadFunction,
        function: Any,
        location: Any,
        debug: DebugInfo | None,
    ) -> None:
        self._debug = debug
        self._flow = flow
        self._thread = thread
        self._region = function.operation.regions[0]
        self._location = location
        # In the order of the program: if lanes wait at several synchronizations, the runtime
        # continues those at the first one.
        order = in_order(flow.entry, set(flow.blocks))
        self._syncs = [block for block in order if block.sync is not None]
        self._available = set(flow.arguments)
        self._layout = self._lay_out()
        # Values that are valid in the whole function, and those valid in the current block only.
        self._values: dict[Value, Any] = {}
        self._local: dict[Value, Any] = {}
        self._own_memory: Any = None

    def _lay_out(self) -> _Layout:
        flow = self._flow
        live = live_at_start(flow)
        crossing: dict[Value, None] = {}
        for block in self._syncs:
            ordered = live[block.edges[0].target]
            crossing |= {v: None for b in flow.blocks for v in _made(b) if v in ordered}
        kept = lasting_allocas(flow, crossing.__contains__)
        self._addresses = addresses = {node.results[0] for node in kept}
        self._recomputable: Callable[[Value], bool] = recomputable(
            flow, lambda v: v in self._available or v in addresses
        )
        end = 0
        values: dict[Value, int] = {}
        for value in crossing:
            if value not in self._available and not self._recomputable(value):
                size = size_of(build.memory_type(value.type))
                values[value] = round_up(end, build.slot_alignment(build.memory_type(value.type)))
                end = values[value] + size.bytes
        self._crossing = set(crossing) - self._available
        allocas: dict[Node, int] = {}
        for node, size in kept.items():
            allocas[node] = round_up(end, min(size.alignment, _THREAD_ALIGNMENT))
            end = allocas[node] + size.bytes
        return _Layout(values, allocas, round_up(end, _THREAD_ALIGNMENT))

    def write(self) -> StepFunction:
        flow, layout = self._flow, self._layout
        thread_bytes = layout.bytes + (WARP_SLOTS // WARP if uses_slots(flow) else 0)
        pointer = build.pointer_type()
        start = self._region.blocks.append(pointer, pointer, build.i64(), build.i32())
        blocks = {
            block: self._region.blocks.append(*[a.type for a in block.arguments])
            for block in flow.blocks
            if block is not flow.entry
        }
        entry = self._region.blocks.append()
        with self._location:
            with ir.InsertionPoint(start):
                self._write_start(start, entry, blocks)
            for block in in_order(flow.entry, set(flow.blocks)):
                into = entry if block is flow.entry else blocks[block]
                if block is not flow.entry:
                    self._values |= dict(zip(block.arguments, into.arguments, strict=True))
                with ir.InsertionPoint(into):
                    self._write_block(block, blocks)
        syncs = [block.sync for block in self._syncs if block.sync is not None]
        return StepFunction(thread_bytes, tuple(syncs))

    def _write_start(self, start: Any, entry: Any, blocks: dict[Block, Any]) -> None:
        parameters, block, linear, state = start.arguments
        common = load_parameters(self._flow, self._thread, parameters, block)
        self._values |= common.arguments
        ids = ids_of(linear, common)
        if self._debug is not None:
            self._debug.declare()
            self._debug.set("thread_id", [ids.x, ids.y, ids.z])
            self._debug.set("block_id", common.block_id)
            self._debug.set("block_dim", common.block_dim)
            self._debug.set("grid_dim", common.grid_dim)
        context = context_values(self._flow)
        block_slots = common.arguments[context["block_slots"]]
        for name in THREAD_VALUES:
            self._values[context[name]] = thread_value(name, ids, common, block_slots)
        place = build.multiply(linear, build.number(self._layout.bytes))
        self._own_memory = build.at(common.memory, place)
        for node, offset in self._layout.allocas.items():
            self._values[node.results[0]] = build.at(self._own_memory, offset)
        for block in self._flow.blocks:
            for node in block.nodes:
                if node.name == "llvm.alloca" and node not in self._layout.allocas:
                    self._keep_on_stack(node)
        targets = [blocks[b.edges[0].target] for b in self._syncs]
        _switch(state, entry, list(range(1, len(targets) + 1)), targets)

    def _keep_on_stack(self, node: Node) -> None:
        count = node.operands[0].node
        if count is not None and count.name == "llvm.mlir.constant":
            self._values[node.results[0]] = clone(node, [clone(count, []).result]).result

    def _write_block(self, block: Block, blocks: dict[Block, Any]) -> None:
        self._local = {}
        for argument in block.arguments:
            self._keep(argument, self._values.get(argument))
        for node in block.nodes:
            if node.name == "llvm.alloca" and node.results[0] in self._values:
                continue
            with node.pattern.location:
                results = clone(node, [self._value(v, block) for v in node.operands]).results
                for value, result in zip(node.results, results, strict=True):
                    # A value that lives across is valid only in this block: a thread may resume
                    # after it.
                    target = self._local if value in self._crossing else self._values
                    target[value] = result
                    self._keep(value, result)
        with block.location:
            self._write_end(block, blocks)

    def _write_end(self, block: Block, blocks: dict[Block, Any]) -> None:
        if block.is_dead_end:
            build.unreachable()
        elif block is self._flow.end:
            build.return_values(build.number(0, build.i32()))
        elif block.sync is not None:
            build.return_values(build.number(1 + self._syncs.index(block), build.i32()))
        else:
            edges = [
                (blocks[edge.target], [self._value(v, block) for v in edge.values])
                for edge in block.edges
            ]
            if block.condition is None:
                build.jump(*edges[0])
            else:
                (then, values), (other, other_values) = edges
                condition = self._value(block.condition, block)
                build.branch(condition, then, other, values, other_values)

    def _keep(self, value: Value, result: Any) -> None:
        if value in self._layout.values and result is not None:
            build.store_value(result, build.at(self._own_memory, self._layout.values[value]))

    def _value(self, value: Value, block: Block) -> Any:
        """The value in the current block: defined there or before, or recomputed or reloaded."""
        if value in self._local:
            return self._local[value]
        if value not in self._crossing or value.block is block:
            return self._values[value]
        return self._again(value, block)

    def _again(self, value: Value, block: Block) -> Any:
        """Recomputes a value and its operands, or loads it from the thread's memory."""
        if value in self._local:
            return self._local[value]
        if value in self._available or value in self._addresses:
            return self._values[value]
        if value in self._layout.values:
            address = build.at(self._own_memory, self._layout.values[value])
            self._local[value] = build.load_value(address, value.type)
        elif value.node is not None:
            operands = [self._again(v, block) for v in value.node.operands]
            results = clone(value.node, operands).results
            self._local |= dict(zip(value.node.results, results, strict=True))
        else:
            raise AssertionError(f"a value of type {value.type} without a place")
        return self._local[value]


def _made(block: Block) -> list[Value]:
    return [*block.arguments, *(result for node in block.nodes for result in node.results)]


def _switch(value: Any, default: Any, numbers: list[int], targets: list[Any]) -> None:
    if not targets:
        build.jump(default)
        return
    cases = ir.DenseElementsAttr.get_splat(
        ir.VectorType.get([1], build.i32()), ir.IntegerAttr.get(build.i32(), numbers[0])
    )
    if len(numbers) > 1:
        text = ", ".join(map(str, numbers))
        cases = ir.Attribute.parse(f"dense<[{text}]> : vector<{len(numbers)}xi32>")
    ir.Operation.create(
        "llvm.switch",
        operands=[value],
        successors=[default, *targets],
        attributes={
            "case_values": cases,
            "case_operand_segments": ir.DenseI32ArrayAttr.get([0] * len(targets)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0]),
        },
    )
