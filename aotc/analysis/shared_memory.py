"""The shared memory of kernels: its static size, and the global that stands for the dynamic
part."""

from __future__ import annotations

import math
from typing import Any

from aotc import ops
from aotc.analysis.types import is_workgroup
from aotc.mlir import ir

# LLVM's number of the address space of shared memory.
_SHARED_SPACE = 3


def static_bytes(kernel: Any) -> int:
    """Bytes of static shared memory of a kernel or a gpu.launch: its workgroup attributions, and
    the workgroup globals that its body uses. A type of unknown size counts as 0."""
    return sum(_bytes(type_) for type_ in _attributions(kernel)) + sum(
        _bytes(type_) for type_ in _globals(kernel).values()
    )


def is_dynamic_global(variable: Any) -> bool:
    """Whether a memref.global or llvm.mlir.global is an array of no elements in shared memory. It
    stands for the dynamic shared memory, whose size the launch gives."""
    if variable.name == "memref.global":
        type_ = variable.attributes["type"].value
        return is_workgroup(type_) and 0 in list(type_.shape)
    if variable.name != "llvm.mlir.global" or "addr_space" not in variable.attributes:
        return False
    is_shared = ir.IntegerAttr(variable.attributes["addr_space"]).value == _SHARED_SPACE
    text = str(ir.TypeAttr(variable.attributes["global_type"]).value)
    return bool(is_shared and text.startswith("!llvm.array<0 x "))


def _attributions(kernel: Any) -> list[Any]:
    blocks = kernel.regions[0].blocks
    if len(blocks) == 0 or "workgroup_attributions" not in kernel.attributes:
        return []
    return [a.type for a in blocks[0].arguments if _is_attribution(a.type)]


def _is_attribution(type_: Any) -> bool:
    # An argument in this space would be the memory of another block, so there are none.
    return isinstance(type_, ir.MemRefType) and is_workgroup(type_)


def _globals(kernel: Any) -> dict[str, Any]:
    return {
        ops.global_of(use): use.results[0].type
        for use in ops.find(kernel, "memref.get_global")
        if is_workgroup(use.results[0].type)
    }


def _bytes(type_: Any) -> int:
    if not type_.has_static_shape:
        return 0
    return int(math.prod(type_.shape)) * element_bytes(type_.element_type)


def element_bytes(element: Any) -> int:
    """Bytes of a number or a vector in memory; 0 if they are not known."""
    count = 1
    if isinstance(element, ir.VectorType):
        count, element = math.prod(element.shape), element.element_type
    try:
        bits = int(element.width)
    except AttributeError:
        bits = 64 if isinstance(element, ir.IndexType) else 0
    return count * -(-bits // 8)
