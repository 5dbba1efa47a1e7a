"""memref.copy → loops, where upstream would call a function.

Upstream copies contiguous memrefs with `memcpy`, and calls `memrefCopy` of its runner utilities for
all others. Loops need no library, and LLVM can optimize them. `memrefCopy` is left for unranked
memrefs. In kernels every copy becomes loops, as the NVPTX back end copies byte by byte.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.mlir import ir

_PARALLEL = ("scf.parallel", "scf.forall", "affine.parallel")


def expand_copies(module: Any) -> None:
    """Rewrites the copies of the module's host functions and gpu.modules, in place."""
    with module.context:
        for copy in ops.find(module.operation, "memref.copy"):
            in_kernel = ops.enclosing(copy, "gpu.module") is not None
            if in_kernel or not all(_is_contiguous(operand.type) for operand in copy.operands):
                expand_copy(copy)


def parallelize_copies(module: Any) -> None:
    """Rewrites the copies of the module's host functions as parallel loops, in place, if both
    memrefs are ranked. One element is copied by a load and a store in a parallel loop, and stays a
    copy elsewhere."""
    with module.context:
        for copy in ops.find(module.operation, "memref.copy"):
            source, target = copy.operands
            if ops.enclosing(copy, "gpu.module", "gpu.launch") is not None:
                continue
            if not _is_ranked(source) or not _is_ranked(target):
                continue
            rank = source.type.rank
            if rank == 0 and ops.enclosing(copy, *_PARALLEL) is None:
                continue
            with copy.location, ir.InsertionPoint(copy):
                copy_element = functools.partial(_copy_element, source, target)
                if rank == 0:
                    copy_element([])
                else:
                    sizes = [_size(source, target, i) for i in range(rank)]
                    ops.create_parallel(sizes, copy_element)
            ops.erase(copy)


def expand_copy(copy: Any) -> None:
    """Replaces a copy by loops over the elements, the last dimension innermost. A copy of two
    unranked memrefs is left."""
    source, target = copy.operands
    with copy.location, ir.InsertionPoint(copy):
        if not _is_ranked(source) and not _is_ranked(target):
            return
        source, target = _ranked_like(source, target), _ranked_like(target, source)
        _copy_elements(source, target, [])
    ops.erase(copy)


def _is_ranked(value: Any) -> bool:
    return isinstance(value.type, ir.MemRefType)


def _ranked_like(value: Any, other: Any) -> Any:
    """`value`; if it is unranked, cast to a memref of the rank of `other` with dynamic strides."""
    if _is_ranked(value):
        return value
    unknown = [ir.ShapedType.get_dynamic_size()] * other.type.rank
    strides = [ir.ShapedType.get_dynamic_stride_or_offset()] * other.type.rank
    layout = ir.StridedLayoutAttr.get(ir.ShapedType.get_dynamic_stride_or_offset(), strides)
    type_ = ir.MemRefType.get(
        unknown, value.type.element_type, layout=layout, memory_space=value.type.memory_space
    )
    return ops.unary("memref.cast", value, type_)


def _copy_elements(source: Any, target: Any, indices: Sequence[Any]) -> None:
    dimension = len(indices)
    if dimension == source.type.rank:
        _copy_element(source, target, indices)
        return
    ops.create_for(
        ops.constant_index(0),
        _size(source, target, dimension),
        ops.constant_index(1),
        lambda index: _copy_elements(source, target, [*indices, index]),
    )


def _copy_element(source: Any, target: Any, indices: Sequence[Any]) -> None:
    element = ops.load(source, indices)
    ops.create("memref.store", [element, target, *indices])


def _size(source: Any, target: Any, dimension: int) -> Any:
    for memref in (source, target):
        if not memref.type.is_dynamic_dim(dimension):
            return ops.constant_index(memref.type.get_dim_size(dimension))
    return ops.dim(source, dimension)


def _is_contiguous(type_: Any) -> bool:
    """Whether upstream lowers copies of such memrefs to `memcpy`."""
    if not isinstance(type_, ir.MemRefType):
        return False
    if type_.affine_map == ir.AffineMap.get_identity(type_.rank):
        return True
    if not type_.has_static_shape or 0 in type_.shape:
        return False
    try:
        strides, _ = type_.get_strides_and_offset()
    except RuntimeError:
        # The layout is an affine map that has no strides.
        return False
    expected = 1
    for size, stride in zip(reversed(type_.shape), reversed(strides), strict=True):
        if stride != expected:
            return False
        expected *= size
    return True
