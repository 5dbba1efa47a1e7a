"""A `Flow` → the plan of how a block runs it: parallel regions of the block, and nested ones.

block   regions between barriers, for all threads; also split at branches that are uniform
warp    a region with warp synchronizations: runs one warp after the other, and is split again
row     a region without: if it has loops that are uniform in a row of threads, groups of a row's
        threads move into these loops if LLVM then vectorizes contiguous accesses
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from aotc.chips import WARP
from aotc.host.kernels import SyncScope
from aotc.targets.cpu.blocks.flow import (
    Block,
    Edge,
    Flow,
    Node,
    Value,
    postdominators,
    split_before,
)
from aotc.targets.cpu.blocks.parallel_regions import DivergenceError, ParallelRegion, Plan, Planner
from aotc.targets.cpu.blocks.prologue import THREAD_VALUES, context_values
from aotc.targets.cpu.blocks.strides import Strides, count_accesses
from aotc.targets.cpu.blocks.uniformity import Uniformity, find_uniformity
from aotc.targets.cpu.thread_function import ThreadFunction

# The number of threads of a row that run together. Values that they carry through a loop should fit
# into registers.
_ROW_WIDTH = 32
# Operations that rows must not have. An alloca would have to last while the other threads of the
# row run. An atomic operation may be a lock, whose owner must be able to run on until it unlocks.
_NOT_IN_ROWS = frozenset(
    {"llvm.alloca", "llvm.atomicrmw", "llvm.cmpxchg", "llvm.fence", "llvm.inline_asm"}
)


class GroupKind(Enum):
    """The kind of group that runs a nested plan."""

    WARP = "warp"
    ROW = "row"


class Nested(Struct, frozen=True):
    """How a region of a block runs, group by group. `varying` values differ between the threads of
    a group."""

    kind: GroupKind
    plan: Plan
    width: int
    varying: set[Value]


class BlockPlan(Struct, frozen=True):
    """The plan of a block, with the nested plans of those of its regions that run by groups."""

    plan: Plan
    nested: dict[ParallelRegion, Nested]


def plan_block(flow: Flow, thread: ThreadFunction) -> BlockPlan:
    """Plans `flow`, and splits blocks of it where necessary. Raises DivergenceError."""
    return _Planner(flow, thread).plan()


class _Planner:
    def __init__(self, flow: Flow, thread: ThreadFunction) -> None:
        self._flow = flow
        self._thread = thread
        self._context = context_values(flow)

    def plan(self) -> BlockPlan:
        if any(b.sync is not None and b.sync.scope is SyncScope.NAMED for b in self._flow.blocks):
            raise DivergenceError  # the other threads of the block do not wait
        self._isolate_deciding_loads()
        flow = self._flow
        self._postdominators = postdominators(flow)
        uniformity = self._uniformity_of(set(THREAD_VALUES))
        outer = set(flow.arguments) - uniformity.varying
        planner = Planner(
            flow, self._postdominators, uniformity, set(flow.blocks), flow.entry, outer
        )
        for block in flow.blocks:
            if block.sync is not None and not block.sync.is_warp:
                planner.require(block)
        plan = planner.plan(syncs_are_warps=False)
        self._begin_outside_of_loops(plan)
        nested = {}
        for region in plan.regions:
            found = self._plan_region(region)
            if found is not None:
                nested[region] = found
        return BlockPlan(plan, nested)

    def _uniformity_of(self, varying: set[str]) -> Uniformity:
        return find_uniformity(
            self._flow, self._postdominators, [self._context[name] for name in varying]
        )

    def _isolate_deciding_loads(self) -> None:
        """Splits blocks so that a load on which a branch may depend begins a block. The group may
        then execute the load once."""
        waiting = [block.condition for block in self._flow.blocks if block.condition is not None]
        incoming: dict[Value, list[Value]] = {}
        for block in self._flow.blocks:
            for edge in block.edges:
                for argument, value in zip(edge.target.arguments, edge.values, strict=True):
                    incoming.setdefault(argument, []).append(value)
        seen: set[Value] = set()
        loads: list[Node] = []
        while waiting:
            value = waiting.pop()
            if value in seen:
                continue
            seen.add(value)
            waiting += incoming.get(value, [])
            if value.node is not None:
                waiting += value.node.operands
                if value.node.name == "llvm.load":
                    loads.append(value.node)
        for node in loads:
            split_before(self._flow, node)

    def _begin_outside_of_loops(self, plan: Plan) -> None:
        """Inserts a block before a loop that is at the beginning of a region.

        The values that the loop carries come once from outside of the region, then from inside. The
        nested plan needs two different values for them.
        """
        predecessors = self._flow.predecessors()
        for region in plan.regions:
            head = region.head
            if not any(block in region.blocks for block in predecessors[head]):
                continue
            front = self._flow.add_block(head.location)
            front.arguments = [Value(argument.type, front) for argument in head.arguments]
            for block in predecessors[head]:
                for edge in block.edges:
                    if edge.target is head and block not in region.blocks:
                        edge.target = front
            front.edges = [Edge(head, list(front.arguments))]
            given = zip(head.arguments, front.arguments, strict=True)
            plan.shared |= {value for argument, value in given if argument in plan.shared}
            region.head = front
            region.blocks.add(front)
            region.straight.insert(0, front)
        self._postdominators = postdominators(self._flow)

    def _plan_region(self, region: ParallelRegion) -> Nested | None:
        if any(block.sync is not None and block.sync.is_warp for block in region.blocks):
            return self._plan_warps(region)
        return self._plan_rows(region)

    def _plan_warps(self, region: ParallelRegion) -> Nested:
        varying = {f"thread_id.{d}" for d in "xyz"} | {"linear", "lane"}
        size = self._thread.block_size
        if (size is not None and size[1] == size[2] == 1) or (
            size is not None and size[0] % WARP == 0
        ):
            varying -= {"thread_id.y", "thread_id.z"}
        uniformity = self._uniformity_of(varying)
        planner = self._planner(region, uniformity)
        for block in region.blocks:
            if block.sync is not None and block.sync.is_warp:
                planner.require(block)
        return Nested(GroupKind.WARP, planner.plan(syncs_are_warps=True), WARP, uniformity.varying)

    def _planner(self, region: ParallelRegion, uniformity: Uniformity) -> Planner:
        outside = {
            value
            for block in region.blocks
            for value in block.uses()
            if value.block not in region.blocks or value in region.head.arguments
        }
        return Planner(
            self._flow,
            self._postdominators,
            uniformity,
            region.blocks,
            region.head,
            outside - uniformity.varying,
        )

    def _plan_rows(self, region: ParallelRegion) -> Nested | None:
        size = self._thread.block_size
        if size is not None and size[0] == 1:
            return None
        if any(node.name in _NOT_IN_ROWS for block in region.blocks for node in block.nodes):
            return None
        uniformity = self._uniformity_of({"thread_id.x", "linear", "lane", "warp", "slots"})
        planner = self._planner(region, uniformity)
        found = False
        strides = Strides(
            {self._context["thread_id.x"], self._context["linear"]}, uniformity.varying
        )
        for branch, loop in _loops(region):
            accesses = count_accesses(loop, strides)
            if accesses.contiguous == 0 or accesses.scattered > accesses.contiguous:
                continue
            try:
                planner.require(branch)
                found = True
            except DivergenceError:
                continue
        if not found:
            return None
        try:
            plan = planner.plan()
        except DivergenceError:
            return None
        return Nested(GroupKind.ROW, plan, _row_width(size), uniformity.varying)


def _row_width(size: tuple[int, int, int] | None) -> int:
    """The number of threads of a row that run together. For a row of known size it is a divisor,
    unless that would be small."""
    if size is None:
        return _ROW_WIDTH
    divisors = [width for width in range(1, _ROW_WIDTH + 1) if size[0] % width == 0]
    return divisors[-1] if 4 * divisors[-1] >= min(_ROW_WIDTH, size[0]) else _ROW_WIDTH


def _loops(region: ParallelRegion) -> list[tuple[Block, set[Block]]]:
    """The branches that end or continue a loop, each with the loop's blocks."""
    loops = []
    for block in region.blocks:
        if block.condition is None:
            continue
        inside = _around(block, region.blocks)
        if inside:
            loops.append((block, inside))
    return sorted(loops, key=lambda loop: loop[0].number)


def _around(block: Block, within: set[Block]) -> set[Block]:
    """The blocks of `within` on paths from `block` back to it."""
    reached: set[Block] = set()
    waiting = [successor for successor in block.successors if successor in within]
    while waiting:
        other = waiting.pop()
        if other not in reached:
            reached.add(other)
            waiting += [s for s in other.successors if s in within]
    if block not in reached:
        return set()
    predecessors: dict[Block, list[Block]] = {}
    for other in reached:
        for successor in other.successors:
            predecessors.setdefault(successor, []).append(other)
    back: set[Block] = set()
    waiting = [block]
    while waiting:
        other = waiting.pop()
        if other not in back:
            back.add(other)
            waiting += [p for p in predecessors.get(other, []) if p in reached]
    return back
