"""A thread function in the LLVM dialect → `Flow`: its blocks, cut at synchronizations.

The operations stay where they are and serve as patterns: who builds a function from a `Flow`
clones them, with operands of its own. What a `Flow` says of operands and blocks is therefore
all that counts.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field

from aotc import ops
from aotc.host.kernels import SyncScope
from aotc.mlir import ir
from aotc.targets.cpu import build
from aotc.targets.cpu.synchronize import FAIL, SYNCHRONIZATIONS


class Value(Struct, eq=False):
    """What an operation makes (`node`), or a block's argument (`node` is None)."""

    type: Any
    block: Block
    node: Node | None = None


class Node(Struct, eq=False, dict=True):
    """One operation, the pattern, with its operands and results here."""

    pattern: Any
    block: Block
    operands: list[Value]
    results: list[Value] = field(default_factory=list)

    @functools.cached_property
    def name(self) -> str:
        return str(self.pattern.name)


class Edge(Struct, eq=False):
    """A way from one block to the next, with the values for its arguments."""

    target: Block
    values: list[Value]


class Sync(Struct, frozen=True):
    """What a thread waits for at the end of a block."""

    scope: SyncScope
    location: Any

    @property
    def is_warp(self) -> bool:
        return self.scope is SyncScope.WARP


class Block(Struct, eq=False):
    """Operations in order, then one of:

    no edge: the function ends here, or (`is_dead_end`) nothing comes behind a failure;
    one edge, behind a synchronization if there is `sync`; two edges: the first if `condition`.
    """

    number: int
    location: Any
    arguments: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    condition: Value | None = None
    edges: list[Edge] = field(default_factory=list)
    sync: Sync | None = None
    is_dead_end: bool = False

    @property
    def successors(self) -> list[Block]:
        return [edge.target for edge in self.edges]

    def uses(self) -> Iterable[Value]:
        """Every value that the block uses, arguments of edges too."""
        for node in self.nodes:
            yield from node.operands
        if self.condition is not None:
            yield self.condition
        for edge in self.edges:
            yield from edge.values


class Flow(Struct):
    """A function: its arguments, and its blocks; the first is the entry, `end` the only exit."""

    arguments: list[Value]
    blocks: list[Block]
    end: Block

    @property
    def entry(self) -> Block:
        return self.blocks[0]

    def add_block(self, location: Any) -> Block:
        block = Block(len(self.blocks), location)
        self.blocks.append(block)
        return block

    def predecessors(self) -> dict[Block, list[Block]]:
        found: dict[Block, list[Block]] = {block: [] for block in self.blocks}
        for block in self.blocks:
            for target in block.successors:
                found[target].append(block)
        return found


def expand_switches(function: Any) -> None:
    """Replaces each llvm.switch by a chain of comparisons."""
    for block in list(function.regions[0].blocks):
        switch = ops.terminator(block)
        if switch.name == "llvm.switch":
            _expand_switch(switch, block)


def _expand_switch(switch: Any, block: Any) -> None:
    operands = list(switch.operands)
    subject = operands[0]
    sizes = list(ir.DenseI32ArrayAttr(switch.attributes["operandSegmentSizes"]))
    default_values = operands[1 : 1 + sizes[1]]
    rest = operands[1 + sizes[1] :]
    default, *targets = list(switch.successors)
    numbers = list(switch.attributes["case_values"]) if "case_values" in switch.attributes else []
    lengths = (
        list(ir.DenseI32ArrayAttr(switch.attributes["case_operand_segments"]))
        if "case_operand_segments" in switch.attributes
        else [0] * len(targets)
    )
    with switch.location:
        here = block
        for target, number, length in zip(targets, numbers, lengths, strict=True):
            values, rest = rest[:length], rest[length:]
            following = here.create_after()
            with ir.InsertionPoint(switch) if here == block else ir.InsertionPoint(here):
                case = build.number(number, subject.type)
                is_it = build.compare(build.EQ, subject, case)
                build.branch(is_it, target, following, values)
            here = following
        with ir.InsertionPoint(switch) if here == block else ir.InsertionPoint(here):
            build.jump(default, default_values)
    ops.erase(switch)


def read_flow(function: Any) -> Flow:
    """Reads an llvm.func without switches and without results."""
    return _Reader(function).read()


class _Reader:
    def __init__(self, function: Any) -> None:
        self._originals = list(function.regions[0].blocks)
        self._blocks: list[Block] = []
        self._first: dict[Any, Block] = {}
        self._values: dict[Any, Value] = {}
        self._end = Block(-1, function.location)

    def read(self) -> Flow:
        for original in self._originals:
            block = self._add(original.operations[0].operation.location)
            self._first[original] = block
            for argument in original.arguments:
                value = Value(argument.type, block)
                block.arguments.append(value)
                self._values[argument] = value
        # Definitions may stand behind their uses in the order of blocks.
        bodies = [(original, self._split(original)) for original in self._originals]
        for _, pieces in bodies:
            for block, operations in pieces:
                for operation in operations:
                    node = block.nodes[operation[1]]
                    node.operands = [self._values[v] for v in operation[0].operands]
        for original, pieces in bodies:
            last = pieces[-1][0]
            if not last.is_dead_end:
                self._terminate(last, ops.terminator(original))
        self._drop_unreachable()
        self._end.number = len(self._blocks)
        self._blocks.append(self._end)
        return Flow(self._blocks[0].arguments, self._blocks, self._end)

    def _add(self, location: Any) -> Block:
        block = Block(len(self._blocks), location)
        self._blocks.append(block)
        return block

    def _split(self, original: Any) -> list[tuple[Block, list[tuple[Any, int]]]]:
        """The blocks that one becomes, each with its operations and their numbers in it."""
        block = self._first[original]
        pieces: list[tuple[Block, list[tuple[Any, int]]]] = [(block, [])]
        for child in list(original.operations)[:-1]:
            operation = child.operation
            callee = _callee(operation)
            if callee in SYNCHRONIZATIONS:
                following = self._add(operation.location)
                block.sync = Sync(SYNCHRONIZATIONS[callee], operation.location)
                block.edges = [Edge(following, [])]
                block = following
                pieces.append((block, []))
                continue
            node = Node(operation, block, [])
            node.results = [Value(result.type, block, node) for result in operation.results]
            self._values |= dict(zip(operation.results, node.results, strict=True))
            pieces[-1][1].append((operation, len(block.nodes)))
            block.nodes.append(node)
            if callee == FAIL:
                block.is_dead_end = True
                break
        return pieces

    def _terminate(self, block: Block, terminator: Any) -> None:
        operands = [self._values[v] for v in terminator.operands]
        targets = [self._first[successor] for successor in terminator.successors]
        if terminator.name == "llvm.return":
            block.edges = [Edge(self._end, [])]
        elif terminator.name == "llvm.br":
            block.edges = [Edge(targets[0], operands)]
        elif terminator.name == "llvm.cond_br":
            _, first, _ = ir.DenseI32ArrayAttr(terminator.attributes["operandSegmentSizes"])
            block.condition = operands[0]
            block.edges = [
                Edge(targets[0], operands[1 : 1 + first]),
                Edge(targets[1], operands[1 + first :]),
            ]
        elif terminator.name == "llvm.unreachable":
            block.is_dead_end = True
        else:
            raise ValueError(f"a thread function ends a block by {terminator.name}")

    def _drop_unreachable(self) -> None:
        reached = reachable(self._blocks[0])
        self._blocks = [block for block in self._blocks if block in reached]
        for number, block in enumerate(self._blocks):
            block.number = number


def _callee(operation: Any) -> str | None:
    if operation.name != "llvm.call" or "callee" not in operation.attributes:
        return None
    return str(ir.FlatSymbolRefAttr(operation.attributes["callee"]).value)


def reachable(start: Block, stop: Block | None = None) -> set[Block]:
    """The blocks on the ways from `start` on, itself too; not beyond, and not, `stop`."""
    found: set[Block] = set()
    waiting = [start]
    while waiting:
        block = waiting.pop()
        if block is stop or block in found:
            continue
        found.add(block)
        waiting += block.successors
    return found


def postdominators(flow: Flow) -> dict[Block, Block | None]:
    """For each block the nearest one that every way from it to the end passes.

    None for the end, and for blocks from which none leads there. Ways into dead ends do not
    count: nobody comes back from there.
    """
    predecessors = flow.predecessors()
    order: list[Block] = []  # the end first, each behind one of its successors
    seen = {flow.end}
    # Depth first from the end, backwards, in post-order.
    stack: list[tuple[Block, list[Block]]] = [(flow.end, list(predecessors[flow.end]))]
    while stack:
        block, waiting = stack[-1]
        while waiting and waiting[-1] in seen:
            waiting.pop()
        if waiting:
            following = waiting.pop()
            seen.add(following)
            stack.append((following, list(predecessors[following])))
        else:
            order.append(block)
            stack.pop()
    order.reverse()
    place = {block: number for number, block in enumerate(order)}
    nearest: dict[Block, Block] = {flow.end: flow.end}

    def meet(one: Block, other: Block) -> Block:
        while one is not other:
            while place[one] > place[other]:
                one = nearest[one]
            while place[other] > place[one]:
                other = nearest[other]
        return one

    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            candidates = [s for s in block.successors if s in nearest]
            found = candidates[0]
            for other in candidates[1:]:
                found = meet(found, other)
            if nearest.get(block) is not found:
                nearest[block] = found
                changed = True
    return {block: None if block is flow.end else nearest.get(block) for block in flow.blocks}


def influenced(block: Block, postdominator: Block | None) -> set[Block]:
    """The blocks that run or not, or how often, as the branch at the end of `block` decides."""
    found: set[Block] = set()
    for successor in block.successors:
        found |= reachable(successor, postdominator)
    return found


def live_at_start(flow: Flow) -> dict[Block, set[Value]]:
    """The values that each block, or what comes behind it, uses and does not make.

    A block's own arguments are not among them.
    """
    made: dict[Block, set[Value]] = {}
    live: dict[Block, set[Value]] = {}
    for block in flow.blocks:
        made[block] = {*block.arguments, *(r for node in block.nodes for r in node.results)}
        live[block] = set(block.uses()) - made[block]
    changed = True
    while changed:
        changed = False
        for block in reversed(flow.blocks):
            found = set(live[block])
            for successor in block.successors:
                found |= live[successor] - made[block] - set(successor.arguments)
            if len(found) != len(live[block]):
                live[block] = found
                changed = True
    return live


def split_edges(flow: Flow) -> None:
    """Puts an empty block on each edge of a branch that carries values or leads to a joint.

    A block then does for one edge what must not be done for the other.
    """
    predecessors = flow.predecessors()
    for block in list(flow.blocks):
        if block.condition is None:
            continue
        for edge in block.edges:
            if edge.values or len(predecessors[edge.target]) > 1:
                between = flow.add_block(block.location)
                between.edges = [Edge(edge.target, edge.values)]
                edge.target, edge.values = between, []


def split_before(flow: Flow, node: Node) -> None:
    """Makes `node` the first of its block: what was before it, and led there, stays."""
    block = node.block
    place = block.nodes.index(node)
    if place == 0:
        return
    rest = flow.add_block(node.pattern.location)
    rest.nodes, block.nodes = block.nodes[place:], block.nodes[:place]
    for moved in rest.nodes:
        moved.block = rest
        for result in moved.results:
            result.block = rest
    rest.condition, rest.edges, rest.sync = block.condition, block.edges, block.sync
    rest.is_dead_end = block.is_dead_end
    block.condition, block.edges, block.sync = None, [Edge(rest, [])], None
    block.is_dead_end = False
