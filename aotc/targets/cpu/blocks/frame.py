"""The state that the writers of a block function share: parameters, slots, and uniform values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from aotc.targets.cpu import build
from aotc.targets.cpu.blocks.debug import DebugInfo
from aotc.targets.cpu.blocks.flow import Block, Flow, Node, Value
from aotc.targets.cpu.blocks.groups import Body, Cursor
from aotc.targets.cpu.blocks.parallel_regions import Plan
from aotc.targets.cpu.blocks.prologue import THREAD_VALUES, Parameters, context_values
from aotc.targets.cpu.sizes import Size, round_up

# Alignment of slots in a block's memory: a vector of the widest machine.
SLOT_ALIGNMENT = 64


class Slots(Struct):
    """The slots of values that live from one region to another: offsets in the block's memory, in
    bytes per thread.

    The array of a value starts at its offset times the number of threads. The memory of an alloca
    is contiguous for each thread.
    """

    values: dict[Value, int] = field(default_factory=dict)
    allocas: dict[Value, tuple[int, Size]] = field(default_factory=dict)
    bytes: int = 0

    def add(self, size: Size) -> int:
        place = round_up(self.bytes, min(size.alignment, SLOT_ALIGNMENT))
        self.bytes = place + size.bytes
        return place


class Level(Struct):
    """The values and stack slots that the regions of one plan use."""

    plan: Plan
    for_each: Callable[[Body], None]
    values: dict[Value, Any]
    is_recomputable: Callable[[Value], bool]
    is_within: bool = False  # whether the plan is nested in a region of another plan
    lane_slots: dict[Value, Any] = field(default_factory=dict)


class Frame:
    """One block function under construction."""

    def __init__(self, flow: Flow, slots: Slots, cursor: Cursor, debug: DebugInfo | None) -> None:
        """`parameters` must be set before it is used: its loads are built first."""
        self.flow = flow
        self.slots = slots
        self.cursor = cursor
        self.debug = debug
        self.context = context_values(flow)
        self.thread_values = {self.context[name]: name for name in THREAD_VALUES}
        self.stack: dict[Value, Any] = {}  # allocas that the threads use one after the other
        self.parameters: Parameters

    def slot_address(self, place: int, size: int, linear: Any) -> Any:
        """The address of thread `linear`'s slot, whose offset is `place` and whose size is
        `size`."""
        array = build.multiply(self.parameters.padded, build.number(place))
        start = build.at(self.parameters.memory, array)
        return build.at(start, build.multiply(linear, build.number(size)))


def is_shared(node: Node, level: Level) -> bool:
    """Whether the group executes a node once."""
    return bool(node.results) and all(v in level.plan.shared for v in node.results)


def users_of(flow: Flow) -> dict[Value, set[Block]]:
    """The blocks that use each value."""
    users: dict[Value, set[Block]] = {}
    for block in flow.blocks:
        for value in (*block.arguments, *(r for node in block.nodes for r in node.results)):
            users.setdefault(value, set())
        for value in block.uses():
            users.setdefault(value, set()).add(block)
    return users


def crossing_values(
    plan: Plan, users: Mapping[Value, set[Block]], available: set[Value]
) -> list[Value]:
    """The values that live from one region of a plan to another, in order."""
    region_of = {block: region for region in plan.regions for block in region.blocks}
    found: list[Value] = []
    for region in plan.regions:
        for block in sorted(region.blocks, key=lambda block: block.number):
            for argument in block.arguments:
                is_given = block is region.head and region is not plan.regions[0]
                if is_given or any(region_of.get(b, region) is not region for b in users[argument]):
                    found.append(argument)
            for node in block.nodes:
                for result in node.results:
                    if any(region_of.get(b, region) is not region for b in users[result]):
                        found.append(result)
    return [value for value in found if value not in plan.shared and value not in available]
