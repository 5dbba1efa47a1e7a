"""A `Flow` and a scope of threads → which values and branches are the same for all of them.

A scope is told by the arguments that differ between its threads: all thread ids for a block, the
ids but for the warp's for a warp, x alone for a row of threads. A value is *uniform* if every
thread of the scope that comes to it at the same time computes the same; a block is *divergent*
if some threads of the scope may run it, or run it once more, while others do not.

A load from a uniform address is uniform: threads that see different values there race.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from aotc.cpu.blocks.flow import Block, Flow, Node, Value, influenced
from aotc.cpu.blocks.purity import is_pure
from aotc.mlir import ir


@dataclass
class Uniformity:
    """What differs between the threads of a scope."""

    varying: set[Value]
    divergent: set[Block]

    def is_uniform_branch(self, block: Block) -> bool:
        return (
            block.condition is not None
            and block.condition not in self.varying
            and block not in self.divergent
        )


def find_uniformity(
    flow: Flow,
    postdominators: dict[Block, Block | None],
    varying: Iterable[Value],
    is_uniform_anyway: Callable[[Node], bool] = lambda node: False,
) -> Uniformity:
    """`varying` are the arguments that differ; `is_uniform_anyway` knows quotients of them."""
    found = Uniformity(set(varying), set())
    predecessors = flow.predecessors()
    branches = [block for block in flow.blocks if block.condition is not None]
    diverging: set[Block] = set()
    changed = True
    while changed:
        changed = False
        for block in flow.blocks:
            changed |= _visit_arguments(block, predecessors[block], diverging, found)
            for node in block.nodes:
                if _varies(node, block, found, is_uniform_anyway):
                    new = set(node.results) - found.varying
                    found.varying |= new
                    changed |= bool(new)
        for branch in branches:
            is_uniform = branch.condition not in found.varying
            if branch not in diverging and not is_uniform:
                diverging.add(branch)
                found.divergent |= influenced(branch, postdominators[branch])
                changed = True
    return found


def _varies(
    node: Node, block: Block, found: Uniformity, is_uniform_anyway: Callable[[Node], bool]
) -> bool:
    if node.name.startswith("llvm.mlir."):
        return False  # constants and addresses of globals
    if block in found.divergent:
        # Threads that leave a loop at different times hold values of different turns.
        return True
    if not is_pure(node) and not _is_plain_load(node):
        return True
    return any(v in found.varying for v in node.operands) and not is_uniform_anyway(node)


def _is_plain_load(node: Node) -> bool:
    """A load that is neither volatile nor atomic."""
    if node.name != "llvm.load" or "volatile_" in node.pattern.attributes:
        return False
    attributes = node.pattern.attributes
    return "ordering" not in attributes or int(ir.IntegerAttr(attributes["ordering"]).value) == 0


def _visit_arguments(
    block: Block, predecessors: list[Block], diverging: set[Block], found: Uniformity
) -> bool:
    """Which arguments of a block vary: by what comes in, or by the way that a thread comes."""
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


def constant_of(value: Value) -> int | None:
    """The number that a value is, if it is an integer constant."""
    if value.node is None or value.node.name != "llvm.mlir.constant":
        return None
    attribute: Any = value.node.pattern.attributes["value"]
    return int(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None


def is_alike_in_runs(node: Node, ids: set[Value], size: int) -> bool:
    """Whether it is the same for all of `size` consecutive ids that begin at a multiple of it.

    `ids` are values that count threads; `size` is a power of two. Quotients by its multiples are
    such values, and comparisons with them.
    """
    if len(node.operands) != 2:
        return False
    left, right = node.operands
    if node.name == "llvm.icmp":
        predicate = int(ir.IntegerAttr(node.pattern.attributes["predicate"]).value)
        if right in ids:
            left, right, predicate = right, left, _SWAPPED.get(predicate, predicate)
        limit = constant_of(right)
        if left not in ids or limit is None:
            return False
        return (predicate in _BELOW and limit % size == 0) or (
            predicate in _UP_TO and (limit + 1) % size == 0
        )
    divisor = constant_of(right)
    if left not in ids or divisor is None or divisor <= 0:
        return False
    if node.name in ("llvm.lshr", "llvm.ashr"):
        return divisor < 64 and (1 << divisor) % size == 0
    return node.name in ("llvm.udiv", "llvm.sdiv") and divisor % size == 0


# llvm.icmp's predicates, by what they tell apart: slt, sge, ult, uge; and sle, sgt, ule, ugt.
_BELOW = (2, 5, 6, 9)
_UP_TO = (3, 4, 7, 8)
_SWAPPED = {2: 4, 4: 2, 3: 5, 5: 3, 6: 8, 8: 6, 7: 9, 9: 7}
