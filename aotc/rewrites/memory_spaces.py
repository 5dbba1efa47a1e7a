"""GPU memory spaces → the host's only address space, or LLVM's numbers, in every type."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.types import LLVM_POINTER, WORKGROUP
from aotc.mlir import ir
from aotc.ops import walk

# Operations without memref results, which are the most frequent ones.
_OF_NUMBERS = ("math.", "arith.add", "arith.mul", "arith.constant", "arith.index_cast")
_SPACE_CASTS = frozenset({"memref.memory_space_cast", "llvm.addrspacecast"})


def number_workgroup_space(root: Any) -> None:
    """`#gpu.address_space<workgroup>` → 3, on every memref under `root`.

    Only some of upstream's conversions to LLVM support the attribute; all support the number.
    """
    attribute = ir.Attribute.parse("#gpu.address_space<workgroup>")
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), int(WORKGROUP))
    known: dict[Any, Any] = {}

    def numbered(type_: Any) -> Any:
        if type_ not in known:
            known[type_] = make_numbered(type_)
        return known[type_]

    def make_numbered(type_: Any) -> Any:
        if isinstance(type_, ir.FunctionType):
            inputs, results = map(numbered, type_.inputs), map(numbered, type_.results)
            return ir.FunctionType.get(list(inputs), list(results))
        if not isinstance(type_, ir.MemRefType) or str(type_.memory_space) != str(attribute):
            return type_
        shape = list(type_.shape)
        return ir.MemRefType.get(shape, type_.element_type, type_.layout, memory_space=number)

    for operation in walk(root):
        if operation.name.startswith(_OF_NUMBERS):
            continue
        blocks = [block for region in operation.regions for block in region.blocks]
        for value in [*operation.results, *(a for block in blocks for a in block.arguments)]:
            type_ = numbered(value.type)
            if type_ != value.type:
                value.set_type(type_)
        if "function_type" in operation.attributes:
            type_ = operation.attributes["function_type"].value
            operation.attributes["function_type"] = ir.TypeAttr.get(numbered(type_))


class SpaceStripper:
    """Rewrites types to the host's address space. Results are cached by type."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def strip(self, type_: Any) -> Any:
        """`type_` without memory spaces."""
        if type_ not in self._known:
            self._known[type_] = self._strip(type_)
        return self._known[type_]

    def _strip(self, type_: Any) -> Any:
        if isinstance(type_, ir.MemRefType):
            element = self.strip(type_.element_type)
            if type_.memory_space is None and element == type_.element_type:
                return type_
            return ir.MemRefType.get(list(type_.shape), element, layout=type_.layout)
        if isinstance(type_, ir.UnrankedMemRefType):
            return ir.UnrankedMemRefType.get(self.strip(type_.element_type), None)
        if isinstance(type_, ir.FunctionType):
            return ir.FunctionType.get(
                [self.strip(t) for t in type_.inputs], [self.strip(t) for t in type_.results]
            )
        text = str(type_)
        if LLVM_POINTER.search(text):
            return ir.Type.parse(LLVM_POINTER.sub("!llvm.ptr", text))
        return type_

    def strip_operation(self, root: Any) -> None:
        """Strips every type under `root`, and removes casts between memory spaces."""
        for operation in walk(root):
            for result in operation.results:
                self._retype(result)
            for region in operation.regions:
                for block in region.blocks:
                    for argument in block.arguments:
                        self._retype(argument)
            self._strip_attributes(operation)
            if operation.name == "llvm.mlir.global" and "addr_space" in operation.attributes:
                operation.attributes["addr_space"] = ir.IntegerAttr.get(
                    ir.IntegerType.get_signless(32), 0
                )
        for operation in list(walk(root)):
            if operation.name in _SPACE_CASTS:
                ops.replace(operation, [operation.operands[0]])

    def _strip_attributes(self, operation: Any) -> None:
        for attribute in list(operation.attributes):
            name = attribute if isinstance(attribute, str) else attribute.name
            try:
                value = operation.attributes[name]
            except TypeError:
                continue  # the bindings do not support elements of complex type
            if isinstance(value, ir.TypeAttr):
                stripped = self.strip(value.value)
                if stripped != value.value:
                    operation.attributes[name] = ir.TypeAttr.get(stripped)

    def _retype(self, value: Any) -> None:
        stripped = self.strip(value.type)
        if stripped != value.type:
            value.set_type(stripped)
