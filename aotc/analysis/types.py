"""Properties of MLIR types."""

from __future__ import annotations

import re
from typing import Any

from aotc.mlir import ir

# The address space of shared memory, as NVVM and the gpu dialect number it.
WORKGROUP = "3"
_BYTE = 8
LLVM_POINTER = re.compile(r"!llvm\.ptr<(\d+)>")


def is_workgroup(type_: Any) -> bool:
    """Whether a value of this type points into workgroup (shared) memory."""
    if isinstance(type_, (ir.MemRefType, ir.UnrankedMemRefType)):
        space = type_.memory_space
        if space is None:
            return False
        if isinstance(space, ir.IntegerAttr):
            return str(space.value) == WORKGROUP
        # The nvgpu and nvvm dialects have other spellings, such as #nvvm.memory_space<shared>.
        return "workgroup" in str(space) or "shared" in str(space)
    return any(found[1] == WORKGROUP for found in LLVM_POINTER.finditer(str(type_)))


def is_tensor_map(type_: Any) -> bool:
    return str(type_).startswith("!nvgpu.tensormap.descriptor<")


def is_packed(element: Any) -> bool:
    """Whether LLVM stores the elements of a vector more densely than the elements of an array."""
    return isinstance(element, (ir.IntegerType, ir.FloatType)) and (
        element.width < _BYTE or bool(element.width & (element.width - 1))
    )
