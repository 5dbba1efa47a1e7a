"""Uniformity analysis of a `Flow`: which values and branches are the same for a scope of threads.

A scope is given by the arguments that differ between its threads: all thread ids for a block, the
ids except the warp's for a warp, x only for a row of threads. A value is *uniform* if every thread
of the scope that reaches it at the same time computes the same. A block is *divergent* if some
threads of the scope may run it, or run it once more, while others do not.

A load from a uniform address is uniform: if threads saw different values there, it would be a race.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from aotc.mlir import ir
from aotc.targets.cpu.blocks.flow import Block, Flow, Node, Value, influenced
from aotc.targets.cpu.blocks.purity import is_pure


class Uniformity(Struct):
    """The values and blocks that are not uniform in a scope of threads."""

    varying: set[Value]
    divergent: set[Block]

    def is_uniform_branch(self, block: Block) -> bool:
        return (
            block.condition is not None
            and block.condition not in self.varying
            and block not in self.divergent
        )


def find_uniformity(
    flow: Flow, postdominators: dict[Block, Block | None], varying: Iterable[Value]
) -> Uniformity:
    """Analyzes `flow`. `varying` are the arguments that differ between threads."""
    found = Uniformity(set(varying), set())
    predecessors = flow.predecessors()
    branches = [block for block in flow.blocks if block.condition is not None]
    # Nodes whose results may still turn out to vary. Each iteration visits only these.
    uniform = {block: _may_be_uniform(block, found) for block in flow.blocks}
    diverging: set[Block] = set()
    changed = True
    while changed:
        changed = False
        for block in flow.blocks:
            changed |= _visit_arguments(block, predecessors[block], diverging, found)
            left = [node for node in uniform[block] if not _record_varying(node, block, found)]
            changed |= len(left) < len(uniform[block])
            uniform[block] = left
        for branch in branches:
            is_uniform = branch.condition not in found.varying
            if branch not in diverging and not is_uniform:
                diverging.add(branch)
                found.divergent |= influenced(branch, postdominators[branch])
                changed = True
    return found


def _may_be_uniform(block: Block, found: Uniformity) -> list[Node]:
    """Nodes whose uniformity depends on their block and their operands. Constants and addresses of
    globals never vary. The results of nodes that are not pure always vary."""
    nodes = []
    for node in block.nodes:
        if not node.results or node.name.startswith("llvm.mlir."):
            continue
        if is_pure(node) or _is_plain_load(node):
            nodes.append(node)
        else:
            found.varying.update(node.results)
    return nodes


def _record_varying(node: Node, block: Block, found: Uniformity) -> bool:
    """Records whether the node's results vary, and returns it."""
    # Threads that leave a loop in different iterations hold values of different iterations.
    if block in found.divergent or not found.varying.isdisjoint(node.operands):
        found.varying.update(node.results)
        return True
    return False


def _is_plain_load(node: Node) -> bool:
    """Whether a node is a load that is neither volatile nor atomic."""
    if node.name != "llvm.load" or "volatile_" in node.pattern.attributes:
        return False
    attributes = node.pattern.attributes
    return "ordering" not in attributes or int(ir.IntegerAttr(attributes["ordering"]).value) == 0


def _visit_arguments(
    block: Block, predecessors: list[Block], diverging: set[Block], found: Uniformity
) -> bool:
    """Records the arguments of a block that vary, because an incoming value does, or because the
    threads come from different predecessors. Returns whether there are new ones."""
    changed = False
    ways_differ = any(p in found.divergent or p in diverging for p in predecessors)
    for number, argument in enumerate(block.arguments):
        if argument in found.varying:
            continue
        incoming = {
            edge.values[number]
            for predecessor in predecessors
            for edge in predecessor.edges
            if edge.target is block
        }
        if (
            block in found.divergent
            or incoming & found.varying
            or (ways_differ and len(incoming) > 1)
        ):
            found.varying.add(argument)
            changed = True
    return changed
