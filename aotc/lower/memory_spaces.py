"""GPU memory spaces → the host's one address space, on every type of a copied gpu.module.

Workgroup memory is not handled here: `support` keeps kernels that use it away.
"""

from __future__ import annotations

import re
from typing import Any

from aotc.mlir import ir
from aotc.ops import walk

# The address space of shared memory, as NVVM and the gpu dialect number it.
_WORKGROUP = "3"
_LLVM_POINTER = re.compile(r"!llvm\.ptr<(\d+)>")
_SPACE_CASTS = frozenset({"memref.memory_space_cast", "llvm.addrspacecast"})


def is_workgroup(type_: Any) -> bool:
    """Whether a value of this type points into workgroup (shared) memory."""
    if isinstance(type_, (ir.MemRefType, ir.UnrankedMemRefType)):
        space = type_.memory_space
        if space is None:
            return False
        if isinstance(space, ir.IntegerAttr):
            return str(space.value) == _WORKGROUP
        # nvgpu and NVVM spell it in other ways: #nvvm.memory_space<shared>, ...
        return "workgroup" in str(space) or "shared" in str(space)
    return any(found[1] == _WORKGROUP for found in _LLVM_POINTER.finditer(str(type_)))


class SpaceStripper:
    """Rewrites types to the host's address space; remembers the types that it saw."""

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
        if _LLVM_POINTER.search(text):
            return ir.Type.parse(_LLVM_POINTER.sub("!llvm.ptr", text))
        return type_

    def strip_operation(self, root: Any) -> None:
        """Strips every type under `root`, and removes the casts between spaces."""
        for operation in walk(root):
            for result in operation.results:
                self._retype(result)
            for region in operation.regions:
                for block in region.blocks:
                    for argument in block.arguments:
                        self._retype(argument)
            for attribute in list(operation.attributes):
                name = attribute if isinstance(attribute, str) else attribute.name
                value = operation.attributes[name]
                if isinstance(value, ir.TypeAttr):
                    stripped = self.strip(value.value)
                    if stripped != value.value:
                        operation.attributes[name] = ir.TypeAttr.get(stripped)
            if operation.name == "llvm.mlir.global" and "addr_space" in operation.attributes:
                operation.attributes["addr_space"] = ir.IntegerAttr.get(
                    ir.IntegerType.get_signless(32), 0
                )
        for operation in list(walk(root)):
            if operation.name in _SPACE_CASTS:
                operation.results[0].replace_all_uses_with(operation.operands[0])
                operation.erase()

    def _retype(self, value: Any) -> None:
        stripped = self.strip(value.type)
        if stripped != value.type:
            value.set_type(stripped)
