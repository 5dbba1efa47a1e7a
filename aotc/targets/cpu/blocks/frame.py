"""What the parts of a block function share: arguments, places for values, and what a group has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from aotc.targets.cpu import build
from aotc.targets.cpu.blocks.debug import DebugInfo
from aotc.targets.cpu.blocks.flow import Block, Flow, Node, Value
from aotc.targets.cpu.blocks.groups import Body, Cursor
from aotc.targets.cpu.blocks.parts import Plan
from aotc.targets.cpu.blocks.prologue import THREAD_VALUES, Parameters, context_values
from aotc.targets.cpu.sizes import Size, round_up

# Slots of a block begin at multiples of this: a whole vector of the widest machine.
SLOT_ALIGNMENT = 64


class Slots(Struct):
    """Where values wait for their next part: offsets in the block's memory, per thread.

    An offset times the number of threads is where a value's array starts. An alloca's memory is
    one thread's behind the other's.
    """

    values: dict[Value, int] = field(default_factory=dict)
    allocas: dict[Value, tuple[int, Size]] = field(default_factory=dict)
    bytes: int = 0

    def add(self, size: Size) -> int:
        place = round_up(self.bytes, min(size.alignment, SLOT_ALIGNMENT))
        self.bytes = place + size.bytes
        return place


class Level(Struct):
    """What parts of one plan see: values that the group has, and slots on the stack."""

    plan: Plan
    for_each: Callable[[Body], None]
    values: dict[Value, Any]
    is_recomputable: Callable[[Value], bool]
    is_within: bool = False  # of a part of another plan
    lane_slots: dict[Value, Any] = field(default_factory=dict)


class Frame:
    """One block function while it is built."""

    def __init__(self, flow: Flow, slots: Slots, cursor: Cursor, debug: DebugInfo | None) -> None:
        """`parameters` must be set before anything asks for it: its loads come first."""
        self.flow = flow
        self.slots = slots
        self.cursor = cursor
        self.debug = debug
        self.context = context_values(flow)
        self.thread_values = {self.context[name]: name for name in THREAD_VALUES}
        self.stack: dict[Value, Any] = {}  # allocas that threads use one after the other
        self.parameters: Parameters

    def slot_address(self, place: int, size: int, linear: Any) -> Any:
        """Where the thread with a number keeps what has an offset and a size in `slots`."""
        array = build.multiply(self.parameters.padded, build.number(place))
        start = build.at(self.parameters.memory, array)
        return build.at(start, build.multiply(linear, build.number(size)))


def is_shared(node: Node, level: Level) -> bool:
    """Whether the group computes a node once."""
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
    plan: Plan, users: Mapping[Value, set[Block]], at_hand: set[Value]
) -> list[Value]:
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
