"""Strides of addresses from one thread to the next, which decide whether accesses can be
vectorized."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from aotc.mlir import ir
from aotc.targets.cpu.blocks.flow import Block, Node, Value
from aotc.targets.cpu.sizes import UnknownSizeError, size_of

_CASTS = frozenset({"llvm.sext", "llvm.zext", "llvm.trunc", "llvm.freeze"})


class Accesses(Struct):
    """The number of loads and stores of some blocks that are contiguous, uniform, or scattered
    across threads."""

    contiguous: int = 0
    same: int = 0
    scattered: int = 0


class Strides:
    """The difference of a value between one thread and the next; None if it is not known.

    `ids` are the values whose stride is 1.
    """

    def __init__(self, ids: set[Value], varying: set[Value]) -> None:
        self._known: dict[Value, int | None] = dict.fromkeys(ids, 1)
        self._varying = varying

    def of(self, value: Value) -> int | None:
        if value not in self._varying:
            return 0
        if value not in self._known:
            self._known[value] = None  # in case of a cycle
            if value.node is not None:
                self._known[value] = self._of_node(value.node)
        return self._known[value]

    def _of_node(self, node: Node) -> int | None:
        if node.name in ("llvm.add", "llvm.sub"):
            left, right = (self.of(v) for v in node.operands)
            if left is None or right is None:
                return None
            return left + right if node.name == "llvm.add" else left - right
        if node.name in ("llvm.mul", "llvm.shl"):
            left = self.of(node.operands[0])
            factor = _constant_of(node.operands[1])
            if left is None or factor is None:
                return None
            return left * factor if node.name == "llvm.mul" else left << min(factor, 63)
        if node.name in _CASTS:
            return self.of(node.operands[0])
        if node.name == "llvm.getelementptr":
            return self._of_address(node)
        return None

    def _of_address(self, node: Node) -> int | None:
        strides = [self.of(v) for v in node.operands]
        if len(strides) != 2 or None in strides:
            return strides[0] if len(strides) == 1 else None
        base, index = strides
        indices = list(ir.DenseI32ArrayAttr(node.pattern.attributes["rawConstantIndices"]))
        if len(indices) != 1 or base is None or index is None:
            return None
        try:
            element = size_of(ir.TypeAttr(node.pattern.attributes["elem_type"]).value)
        except UnknownSizeError:
            return None
        return base + index * element.bytes


def count_accesses(blocks: set[Block], strides: Strides) -> Accesses:
    found = Accesses()
    for block in blocks:
        for node in block.nodes:
            if node.name == "llvm.load":
                address, type_ = node.operands[0], node.results[0].type
            elif node.name == "llvm.store":
                address, type_ = node.operands[1], node.operands[0].type
            else:
                continue
            stride = strides.of(address)
            if stride == 0:
                found.same += 1
            elif stride is not None and stride == size_of(type_).bytes:
                found.contiguous += 1
            else:
                found.scattered += 1
    return found


def _constant_of(value: Value) -> int | None:
    """The number that a value is, if it is an integer constant, else None."""
    if value.node is None or value.node.name != "llvm.mlir.constant":
        return None
    attribute: Any = value.node.pattern.attributes["value"]
    return int(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None
