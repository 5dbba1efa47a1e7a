"""A thread function in the LLVM dialect → `Flow`: its CFG, with blocks split at synchronizations.

The operations are not moved. They are patterns: a function is built from a `Flow` by cloning them
with other operands. So only the operands and blocks of the `Flow` count, not those of the
operations.
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
    """A result of an operation (`node`), or a block argument (`node` is None)."""

    type: Any
    block: Block
    node: Node | None = None


class Node(Struct, eq=False, dict=True):
    """One operation (`pattern`), with its operands and results in the `Flow`."""

    pattern: Any
    block: Block
    operands: list[Value]
    results: list[Value] = field(default_factory=list)

    @functools.cached_property
    def name(self) -> str:
        return str(self.pattern.name)


class Edge(Struct, eq=False):
    """An edge from a block to `target`, with the values of the target's arguments."""

    target: Block
    values: list[Value]


class Sync(Struct, frozen=True):
    """The synchronization at the end of a block."""

    scope: SyncScope
    location: Any

    @property
    def is_warp(self) -> bool:
        return self.scope is SyncScope.WARP


class Block(Struct, eq=False):
    """Operations in order, and then one of these ends:

    no edge: the function returns, or (`is_dead_end`) control does not return after a failure;
    one edge: a jump, after the synchronization `sync` if there is one;
    two edges: a branch, to the first if `condition` holds.
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
        """Every value that the block uses, including the values of edges."""
        for node in self.nodes:
            yield from node.operands
        if self.condition is not None:
            yield self.condition
        for edge in self.edges:
            yield from edge.values


class Flow(Struct):
    """A function: its arguments, and its blocks. The first block is the entry, `end` the only
    exit."""

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
    """Reads an llvm.func that has no switches and no results."""
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
        # A definition may follow its uses in the order of the blocks.
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
        """The blocks that a block is split into, each with its operations and their indices."""
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
    """The blocks that can be reached from `start`, including it, on paths that end before
    `stop`."""
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
    """The immediate postdominator of each block.

    It is None for the end, and for blocks from which the end cannot be reached. Paths into dead
    ends do not count, as control does not return from there.
    """
    predecessors = flow.predecessors()
    order: list[Block] = []  # the end first; each block follows one of its successors
    seen = {flow.end}
    # A depth-first search backwards from the end, in post-order.
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
    """The blocks that are control dependent on the branch at the end of `block`."""
    found: set[Block] = set()
    for successor in block.successors:
        found |= reachable(successor, postdominator)
    return found


def live_at_start(flow: Flow) -> dict[Block, set[Value]]:
    """The live-in values of each block: values that it or a later block uses, and that are defined
    earlier.

    The block's own arguments are not included.
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
    """Inserts an empty block on each edge of a branch that has values, or is critical.

    So there is a block for code that must run on one edge only.
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
    """Splits the block of `node` before it. The first half keeps the predecessors."""
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
