"""Allocas of a thread function that need memory beyond one turn of a thread.

If threads run in turns, memory that a thread allocates must outlast its turn. An alloca whose
address is only used between two synchronizations stays on the stack, where all threads use it one
after the other. Any other alloca gets a place in the thread's scratch memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aotc.mlir import ir
from aotc.targets.cpu.blocks.flow import Flow, Node, Value
from aotc.targets.cpu.sizes import Size, size_of

_ADDRESSES = frozenset({"llvm.getelementptr", "llvm.bitcast", "llvm.freeze"})
_MARKERS = frozenset({"llvm.intr.lifetime.start", "llvm.intr.lifetime.end"})
# Larger allocas are not put on the stack of the thread that launches a kernel.
_LARGEST_ON_STACK = 4096


class DynamicAllocaError(Exception):
    """An alloca of unknown size that must outlast a synchronization. It has the location."""

    def __init__(self, location: Any) -> None:
        super().__init__("memory of unknown size is allocated and used across a synchronization")
        self.location = location


def allocas(flow: Flow) -> list[Node]:
    return [node for block in flow.blocks for node in block.nodes if node.name == "llvm.alloca"]


def alloca_size(node: Node) -> Size | None:
    """The size and alignment of an alloca; None if its size is not a constant."""
    count = node.operands[0].node
    if count is None or count.name != "llvm.mlir.constant":
        return None
    number = int(ir.IntegerAttr(count.pattern.attributes["value"]).value)
    element = size_of(ir.TypeAttr(node.pattern.attributes["elem_type"]).value)
    alignment = element.alignment
    if "alignment" in node.pattern.attributes:
        alignment = max(alignment, int(node.pattern.attributes["alignment"].value))
    return Size(number * element.bytes, alignment)


def lasting_allocas(flow: Flow, outlasts: Callable[[Value], bool]) -> dict[Node, Size]:
    """The allocas whose addresses are, or may be, used beyond one turn of a thread.

    `outlasts` says whether a value is used beyond the turn that defines it. Raises
    DynamicAllocaError.
    """
    found = allocas(flow)
    if not found:
        return {}
    users: dict[Value, list[Node]] = {}
    for block in flow.blocks:
        for node in block.nodes:
            for operand in node.operands:
                users.setdefault(operand, []).append(node)
    passed_on = {value for block in flow.blocks for edge in block.edges for value in edge.values}
    lasting: dict[Node, Size] = {}
    for alloca in found:
        size = alloca_size(alloca)
        is_large = size is not None and size.bytes > _LARGEST_ON_STACK
        if is_large or not _stays(alloca, users, passed_on, outlasts):
            if size is None:
                raise DynamicAllocaError(alloca.pattern.location)
            lasting[alloca] = size
    return lasting


def _stays(
    alloca: Node,
    users: dict[Value, list[Node]],
    passed_on: set[Value],
    outlasts: Callable[[Value], bool],
) -> bool:
    waiting = list(alloca.results)
    while waiting:
        address = waiting.pop()
        if address in passed_on or outlasts(address):
            return False
        for user in users.get(address, []):
            if user.name in _ADDRESSES:
                waiting += user.results
            elif user.name == "llvm.store":
                if user.operands[0] is address:
                    return False
            elif user.name != "llvm.load" and user.name not in _MARKERS:
                return False
    return True
