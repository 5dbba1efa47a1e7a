"""A region in which only few threads have work → the ranges of thread ids that have.

Examples are `if (thread == 0) write the sum`, and the steps of a tree reduction. As a branch in the
loop over the threads, it would be taken by all of them, and LLVM would not vectorize. As the range
of the loop it costs nothing. `bounds` does the same at the start of a kernel without
synchronizations, with limits that may be sums of ids. Here a limit is a uniform value of the block
that is compared with an id itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from aotc.mlir import ir
from aotc.ops import create
from aotc.targets.cpu import build
from aotc.targets.cpu.blocks.flow import Block, Edge, Value
from aotc.targets.cpu.blocks.parallel_regions import ParallelRegion
from aotc.targets.cpu.blocks.purity import is_pure

_EQ, _NE, _SLT, _SLE, _SGT, _SGE, _ULT, _ULE, _UGT, _UGE = range(10)
_SWAPPED = {_EQ: _EQ, _NE: _NE, _SLT: _SGT, _SGT: _SLT, _SLE: _SGE, _SGE: _SLE}
_SWAPPED |= {_ULT: _UGT, _UGT: _ULT, _ULE: _UGE, _UGE: _ULE}
_NEGATED = {_EQ: _NE, _NE: _EQ, _SLT: _SGE, _SGE: _SLT, _SLE: _SGT, _SGT: _SLE}
_NEGATED |= {_ULT: _UGE, _UGE: _ULT, _ULE: _UGT, _UGT: _ULE}
# Predicates that give the end of a range; ids are not negative.
_UPPER = (_SLT, _SLE, _ULT, _ULE)


class Limit(Struct, frozen=True):
    """A limit of the ids along one dimension that have work: those for which `predicate` (eq, or an
    upper limit) with `value` holds."""

    dimension: int
    predicate: int
    value: Value

    def narrow(self, first: Any, end: Any, value: Any) -> tuple[Any, Any]:
        """The part of the range from `first` to `end` (exclusive) that has work, as i64 values."""
        if self.predicate == _EQ:
            # In an unsigned comparison, a value outside of the range gives an empty range.
            size = build.integer_op("sub", end, first)
            offset = build.integer_op("sub", value, first)
            is_inside = build.compare(build.ULT, offset, size)
            behind = build.integer_op("add", value, build.number(1))
            narrowed = create("llvm.select", [is_inside, behind, value], [value.type]).result
            return value, narrowed
        if self.predicate in (_ULT, _ULE):
            # A large limit does not limit; as a signed number it would be negative.
            zero = build.number(0)
            is_large = build.compare(build.SLT, value, zero)
            value = create("llvm.select", [is_large, end, value], [value.type]).result
        if self.predicate in (_SLE, _ULE):
            value = create("llvm.intr.sadd.sat", [value, build.number(1)], [value.type]).result
        return first, build.smaller(end, value)


class Guard(Struct, frozen=True):
    """A branch that leads out of a region for all threads that are not within the limits.

    `is_whole` says that the limits are its whole condition: threads within them take `onward`.
    """

    block: Block
    onward: Edge
    limits: tuple[Limit, ...]
    is_whole: bool


def find_guard(
    region: ParallelRegion,
    dimensions: dict[Value, int],
    is_shared: Callable[[Value], bool],
    has_slot: Callable[[Value], bool],
) -> Guard | None:
    """The first branch of `region`, if threads that fail its condition do nothing else.

    `dimensions` maps the thread ids to their dimensions. `is_shared` says which values are uniform.
    """

    thread = _Thread(region, is_shared, has_slot)
    block = thread.first_branch()
    if block is None or block.condition is None:
        return None
    then, other = block.edges
    must_hold = thread.leads_out(other)
    if must_hold == thread.leads_out(then):
        return None
    onward = then if must_hold else other
    conditions = _conjuncts(block.condition, "llvm.and" if must_hold else "llvm.or")
    limits = [_limit(condition, must_hold, dimensions, is_shared) for condition in conditions]
    found = tuple(limit for limit in limits if limit is not None)
    return Guard(block, onward, found, len(found) == len(limits)) if found else None


class _Thread(Struct, frozen=True):
    """What a thread executes of `region` for itself. The fields are those of `find_guard`."""

    region: ParallelRegion
    is_shared: Callable[[Value], bool]
    has_slot: Callable[[Value], bool]

    def first_branch(self) -> Block | None:
        """The first block that ends in a branch that is not uniform, if the thread has no work
        before it."""
        block, seen = self.region.head, set[Block]()
        while block.condition is None or self.is_shared(block.condition):
            seen.add(block)
            if len(block.edges) != 1 or not self._is_idle(block):
                return None
            (edge,) = block.edges
            if edge.target not in self.region.blocks - seen or not self._passes_on(edge):
                return None
            block = edge.target
        return block if self._is_idle(block) else None

    def leads_out(self, edge: Edge) -> bool:
        """Whether all paths from `edge` on lead to the region's end without work."""
        seen: set[Block] = set()
        while edge.target in self.region.blocks and edge.target not in seen:
            seen.add(edge.target)
            block = edge.target
            if not self._passes_on(edge) or not self._is_idle(block) or block.is_dead_end:
                return False
            if block.condition is not None:
                return all(other.target not in self.region.blocks for other in block.edges)
            if not block.edges:
                return True
            (edge,) = block.edges
        return edge.target not in seen and self._passes_on(edge)

    def _is_idle(self, block: Block) -> bool:
        """Whether no value that the block computes is kept for the thread."""
        return all(
            (node.results and all(map(self.is_shared, node.results)))
            or (is_pure(node) and not any(map(self.has_slot, node.results)))
            for node in block.nodes
        )

    def _passes_on(self, edge: Edge) -> bool:
        return not any(map(self.has_slot, edge.target.arguments))


def _conjuncts(condition: Value, joint: str) -> list[Value]:
    if condition.node is None or condition.node.name != joint:
        return [condition]
    return [region for operand in condition.node.operands for region in _conjuncts(operand, joint)]


def _limit(
    condition: Value,
    must_hold: bool,
    dimensions: dict[Value, int],
    is_shared: Callable[[Value], bool],
) -> Limit | None:
    node = condition.node
    if node is None or node.name != "llvm.icmp":
        return None
    left, right = node.operands
    predicate = int(ir.IntegerAttr(node.pattern.attributes["predicate"]).value)
    if not must_hold:
        predicate = _NEGATED[predicate]
    for bounded, limit, relation in ((left, right, predicate), (right, left, _SWAPPED[predicate])):
        if bounded in dimensions and is_shared(limit) and relation in (_EQ, *_UPPER):
            return Limit(dimensions[bounded], relation, limit)
    return None
