"""A single-entry region of a `Flow` → `Plan`: its uniform branches, and its parallel regions.

A group of threads (a block, a warp, a row) runs the code in turns: every thread runs one *parallel
region*, then every thread runs the next. Between the parallel regions are the branches that are
uniform in the group, which are taken once for the group, and the synchronizations. So the loop over
the threads moves into the loops and branches of the kernel, as far as it must (if there is a
synchronization), or should (if LLVM then vectorizes along the threads).

The branches that must be uniform are found from the blocks that all threads must reach together:
they are the branches that lead there, and the values that their conditions depend on.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from aotc.targets.cpu.blocks.cloning import in_order
from aotc.targets.cpu.blocks.flow import Block, Edge, Flow, Node, Sync, Value, influenced
from aotc.targets.cpu.blocks.purity import is_pure
from aotc.targets.cpu.blocks.uniformity import Uniformity

_WRITES = frozenset(
    {
        "llvm.store",
        "llvm.call",
        "llvm.call_intrinsic",
        "llvm.inline_asm",
        "llvm.atomicrmw",
        "llvm.cmpxchg",
        "llvm.fence",
    }
)


class DivergenceError(Exception):
    """The threads of the group may diverge before a point that they must reach together."""


class ParallelRegion(Struct, eq=False):
    """A parallel region: blocks that a thread runs in one turn, from `head` on.

    It ends by a branch that the group takes (`condition`), by a synchronization, or by a jump. If
    it has no edge, it ends where the planned code ends.
    """

    head: Block
    blocks: set[Block]
    # Its blocks that every thread runs exactly once, in order.
    straight: list[Block] = field(default_factory=list)
    condition: Value | None = None
    sync: Sync | None = None
    edges: list[Edge] = field(default_factory=list)
    # Whether `edges` lead out of the planned code.
    is_last: bool = False


class Plan(Struct):
    """The parallel regions, each after those that dominate it, and the values that the group
    computes once."""

    regions: list[ParallelRegion]
    shared: set[Value]


class Planner:
    """Plans a single-entry region for one group of threads: `blocks`, entered at `entry`."""

    def __init__(
        self,
        flow: Flow,
        postdominators: dict[Block, Block | None],
        uniformity: Uniformity,
        blocks: set[Block],
        entry: Block,
        outer: set[Value],
    ) -> None:
        """`outer` are the values from outside of `blocks` that are uniform in the group."""
        self._flow = flow
        self._uniformity = uniformity
        self._blocks = blocks
        self._entry = entry
        self._outer = outer
        self._predecessors = flow.predecessors()
        self._influenced = {
            block: influenced(block, postdominators[block]) & blocks
            for block in flow.blocks
            if block in blocks and block.condition is not None
        }
        self._converged: set[Block] = set()  # blocks that every thread must run equally often
        self._uniform_branches: set[Block] = set()  # branches that the group must take together
        self._values: set[Value] = set()  # values that these branches depend on
        self._divergent: set[Block] = set()

    def require(self, block: Block) -> None:
        """Requires that all threads of the group reach `block` together, and take its branch
        together if it has one. Raises DivergenceError, and then does not change the plan."""
        before = set(self._converged), set(self._uniform_branches), set(self._values)
        waiting: list[Block | Value] = [block]
        try:
            if block.condition is not None:
                waiting.append(self._require_uniform(block))
            while waiting:
                item = waiting.pop()
                if isinstance(item, Block):
                    if item not in self._converged:
                        self._converged.add(item)
                        waiting += self._controlling(item)
                elif item not in self._values:
                    self._values.add(item)
                    waiting += self._dependences(item)
        except DivergenceError:
            self._converged, self._uniform_branches, self._values = before
            raise

    def _controlling(self, block: Block) -> Iterable[Block | Value]:
        if block in self._uniformity.divergent:
            raise DivergenceError
        for branch, blocks in self._influenced.items():
            if block in blocks and branch not in self._uniform_branches:
                yield branch
                yield self._require_uniform(branch)

    def _require_uniform(self, branch: Block) -> Value:
        """Marks a branch as taken together; returns its condition."""
        if branch.condition is None or not self._uniformity.is_uniform_branch(branch):
            raise DivergenceError
        self._uniform_branches.add(branch)
        return branch.condition

    def _dependences(self, value: Value) -> Iterable[Block | Value]:
        if value in self._uniformity.varying:
            raise DivergenceError
        if value.block not in self._blocks or value in self._flow.arguments:
            return
        yield value.block
        if value.node is not None:
            yield from value.node.operands
            return
        number = value.block.arguments.index(value)
        for predecessor in self._predecessors[value.block]:
            if predecessor in self._blocks:
                yield predecessor
            for edge in predecessor.edges:
                if edge.target is value.block:
                    yield edge.values[number]

    def plan(self, *, syncs_are_warps: bool | None = None) -> Plan:
        """The plan. `syncs_are_warps` says which synchronizations end a parallel region: those of
        warps, those of blocks, or (None) none."""
        own = [b for branch, b in self._influenced.items() if branch not in self._uniform_branches]
        self._divergent = set().union(*own)  # control dependent on a branch of each thread
        owner = self._collapse()
        regions = self._make_regions(owner, syncs_are_warps)
        shared = self._shared_values(regions)
        if any(
            region.condition is not None and region.condition not in shared for region in regions
        ):
            raise DivergenceError
        return Plan(regions, shared)

    def _collapse(self) -> dict[Block, set[Block]]:
        """Merges blocks that one parallel region must have, because they are control dependent on a
        branch that each thread takes for itself."""
        owner = {block: {block} for block in self._blocks}
        for branch, blocks in self._influenced.items():
            if branch in self._uniform_branches:
                continue
            merged: set[Block] = set()
            for block in (branch, *blocks):
                if block in self._converged and block is not branch:
                    raise DivergenceError
                merged |= owner[block]
            for block in merged:
                owner[block] = merged
        return owner

    def _make_regions(
        self, owner: dict[Block, set[Block]], syncs_are_warps: bool | None
    ) -> list[ParallelRegion]:
        regions: list[ParallelRegion] = []
        region_of: dict[Block, ParallelRegion] = {}
        for block in in_order(self._entry, self._blocks):
            if block in region_of:
                continue
            blocks = owner[block]
            if any(
                predecessor not in blocks and other is not block
                for other in blocks
                for predecessor in self._predecessors[other]
            ):
                raise DivergenceError  # a second entry
            region = self._region(block, blocks, syncs_are_warps)
            before = self._only_predecessor(region, region_of)
            if before is not None and self._can_join(before, region):
                before.blocks |= region.blocks
                before.straight += region.straight
                before.condition, before.sync = region.condition, region.sync
                before.edges, before.is_last = region.edges, region.is_last
                region = before
            else:
                regions.append(region)
            region_of |= dict.fromkeys(blocks, region)
        return regions

    def _region(
        self, head: Block, blocks: set[Block], syncs_are_warps: bool | None
    ) -> ParallelRegion:
        region = ParallelRegion(head, set(blocks))
        order = in_order(head, blocks)
        region.straight = [block for block in order if block not in self._divergent]
        if head in self._uniform_branches:
            region.edges = list(head.edges)
            region.condition = head.condition
        else:
            region.edges = [
                edge for block in order for edge in block.edges if edge.target not in blocks
            ]
            if len({edge.target for edge in region.edges}) > 1:
                raise DivergenceError
            del region.edges[1:]
        if head.sync is not None and head.sync.is_warp == syncs_are_warps:
            region.sync = head.sync
        outside = [edge for edge in region.edges if edge.target not in self._blocks]
        if outside and len(outside) < len(region.edges):
            raise DivergenceError
        region.is_last = bool(outside) or not region.edges
        return region

    def _only_predecessor(
        self, region: ParallelRegion, region_of: dict[Block, ParallelRegion]
    ) -> ParallelRegion | None:
        if region.head is self._entry:
            return None
        found = {
            region_of.get(block)
            for block in self._predecessors[region.head]
            if block not in region.blocks
        }
        return found.pop() if len(found) == 1 else None

    def _can_join(self, before: ParallelRegion, region: ParallelRegion) -> bool:
        if before.condition is not None or before.sync is not None or before.is_last:
            return False
        reads_shared = any(
            self._is_shared_load(node) for block in region.straight for node in block.nodes
        )
        writes = any(node.name in _WRITES for block in before.blocks for node in block.nodes)
        return not (reads_shared and writes)

    def _is_shared_load(self, node: Node) -> bool:
        return node.name == "llvm.load" and node.results[0] in self._values

    def _shared_values(self, regions: list[ParallelRegion]) -> set[Value]:
        """The values that the group computes once: pure and uniform, in blocks that every thread
        runs once."""
        shared = set(self._outer)
        # A fixed point iteration that is optimistic for the arguments of loops.
        heads = {region.head: region for region in regions}
        candidates: set[Value] = set()
        for region in regions:
            for block in region.straight:
                candidates |= set(block.arguments)
                for node in block.nodes:
                    if is_pure(node) or self._is_shared_load(node):
                        candidates |= set(node.results)
        candidates -= self._uniformity.varying
        straight = {block for region in regions for block in region.straight}
        changed = True
        while changed:
            changed = False
            for value in list(candidates):
                if not self._can_share(value, candidates | shared, straight, heads):
                    candidates.discard(value)
                    changed = True
        return shared | candidates

    def _can_share(
        self,
        value: Value,
        shared: set[Value],
        straight: set[Block],
        heads: dict[Block, ParallelRegion],
    ) -> bool:
        if value.node is not None:
            return all(operand in shared for operand in value.node.operands)
        number = value.block.arguments.index(value)
        incoming = []
        for predecessor in self._predecessors[value.block]:
            edges = [edge for edge in predecessor.edges if edge.target is value.block]
            incoming += [(predecessor, edge.values[number]) for edge in edges]
        if not incoming or any(source not in shared for _, source in incoming):
            return False
        if value.block is self._entry:
            return False  # it comes from outside
        is_one = len({source for _, source in incoming}) == 1
        return is_one or (
            value.block in heads and all(predecessor in straight for predecessor, _ in incoming)
        )
