"""The shared memory of kernels: how much is static, and what names the dynamic one."""

from __future__ import annotations

import math
from typing import Any

from aotc import ops
from aotc.analysis.types import is_workgroup
from aotc.mlir import ir

# LLVM's number of the address space.
_SHARED_SPACE = 3


def static_bytes(kernel: Any) -> int:
    """The static shared memory of a kernel, or of a gpu.launch: its workgroup attributions, and
    the globals of that space that its body names. What has no known size counts as nothing."""
    return sum(_bytes(type_) for type_ in _attributions(kernel)) + sum(
        _bytes(type_) for type_ in _globals(kernel).values()
    )


def is_dynamic_global(variable: Any) -> bool:
    """Whether a memref.global or llvm.mlir.global is an array without elements in shared memory: it
    stands for the dynamic part, of which the launch says the size."""
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
    # An argument of that space would be memory of another block's: there are none.
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
    """What a number, or a vector, takes in memory; 0 where that is not known."""
    count = 1
    if isinstance(element, ir.VectorType):
        count, element = math.prod(element.shape), element.element_type
    try:
        bits = int(element.width)
    except AttributeError:
        bits = 64 if isinstance(element, ir.IndexType) else 0
    return count * -(-bits // 8)
