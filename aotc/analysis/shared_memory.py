"""The static shared memory of kernels."""

from __future__ import annotations

import math
from typing import Any

from aotc import ops
from aotc.analysis.types import is_workgroup
from aotc.mlir import ir


def static_bytes(kernel: Any) -> int:
    """The static shared memory of a kernel, or of a gpu.launch: its workgroup attributions, and
    the globals of that space that its body names. What has no known size counts as nothing."""
    return sum(_bytes(type_) for type_ in _attributions(kernel)) + sum(
        _bytes(type_) for type_ in _globals(kernel).values()
    )


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
    element = type_.element_type
    count = 1
    if isinstance(element, ir.VectorType):
        count, element = math.prod(element.shape), element.element_type
    try:
        bits = int(element.width)
    except AttributeError:
        bits = 64 if isinstance(element, ir.IndexType) else 0
    if not type_.has_static_shape:
        return 0
    return int(math.prod(type_.shape)) * count * -(-bits // 8)
