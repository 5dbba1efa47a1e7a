"""Copies of the operations of a `Flow`, and the order of its blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aotc.targets.cpu.blocks.flow import Block, Flow, Node, Value
from aotc.targets.cpu.blocks.purity import CHEAP

_MOST_OPERATIONS = 24


def clone(node: Node, operands: list[Any]) -> Any:
    """Clones a node's operation at the current insertion point."""
    operation = node.pattern.clone().operation
    for number, operand in enumerate(operands):
        operation.operands[number] = operand
    return operation


def recomputable(flow: Flow, is_available: Callable[[Value], bool]) -> Callable[[Value], bool]:
    """A predicate: whether a value can be computed from available values (those for which
    `is_available` holds) with a few cheap operations.

    A value that dominates its use can be recomputed there: if its operands had changed, the value
    would have been computed again, too.
    """
    known: dict[Value, int | None] = {}

    def cost(value: Value) -> int | None:
        if is_available(value):
            return 0
        if value not in known:
            known[value] = None
            if value.node is not None and value.node.name in CHEAP:
                parts = [cost(operand) for operand in value.node.operands]
                total = 1 + sum(part or 0 for part in parts)
                if None not in parts and total <= _MOST_OPERATIONS:
                    known[value] = total
        return known[value]

    return lambda value: cost(value) is not None


def in_order(entry: Block, within: set[Block]) -> list[Block]:
    """The blocks of `within` in reverse post-order: a block follows those that dominate it."""
    order: list[Block] = []
    seen = {entry}
    stack: list[tuple[Block, list[Block]]] = [(entry, list(reversed(entry.successors)))]
    while stack:
        block, waiting = stack[-1]
        while waiting and (waiting[-1] in seen or waiting[-1] not in within):
            waiting.pop()
        if waiting:
            following = waiting.pop()
            seen.add(following)
            stack.append((following, list(reversed(following.successors))))
        else:
            order.append(block)
            stack.pop()
    order.reverse()
    return order
