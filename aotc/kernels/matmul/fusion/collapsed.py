"""Views of buffers as matrices: consecutive dimensions that are contiguous are collapsed to one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

from aotc import ops
from aotc.mlir import ir

# For each dimension of the result, the dimensions that are collapsed to it.
Groups = Sequence[Sequence[int]]


def collapsed_type(value: Any, groups: Groups) -> Any | None:
    """The type of the view that `collapse` creates; None if the dimensions of a group are not known
    to be contiguous."""
    type_ = ir.MemRefType(value.type)
    if all(len(group) == 1 for group in groups):
        return type_
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = [dynamic if type_.is_dynamic_dim(i) else type_.shape[i] for i in range(type_.rank)]
    sizes = [
        dynamic if any(shape[i] == dynamic for i in group) else prod(shape[i] for i in group)
        for group in groups
    ]
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank))
    if type_.layout == identity:
        return ir.MemRefType.get(sizes, type_.element_type, memory_space=type_.memory_space)
    strides, offset = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    for group in groups:
        for outer, inner in pairwise(group):
            known = unknown not in (strides[outer], strides[inner]) and shape[inner] != dynamic
            if not known or strides[outer] != strides[inner] * shape[inner]:
                return None
    layout = ir.StridedLayoutAttr.get(offset, [strides[group[-1]] for group in groups])
    return ir.MemRefType.get(sizes, type_.element_type, layout, type_.memory_space)


def collapse(value: Any, groups: Groups) -> Any:
    """The view of a buffer with collapsed dimensions, created at the insertion point. Its
    `collapsed_type` must not be None."""
    type_ = collapsed_type(value, groups)
    assert type_ is not None
    if type_ == value.type:
        return value
    attributes = {"reassociation": ops.reassociation(groups)}
    return ops.create("memref.collapse_shape", [value], [type_], attributes).result


def each(rank: int) -> list[list[int]]:
    """The groups that collapse nothing: each dimension is a group."""
    return [[i] for i in range(rank)]


def known_factor(value: Any, dimensions: Sequence[int]) -> int:
    """The product of a buffer's known sizes along the dimensions, and of the known sizes that a
    view collapsed to them: the number of their elements is a multiple of it."""
    type_ = ir.MemRefType(value.type)
    factor = prod(type_.shape[i] for i in dimensions if not type_.is_dynamic_dim(i))
    owner = ops.defining(value)
    if owner is None or owner.name != "memref.collapse_shape":
        return int(factor)
    groups = [
        [ir.IntegerAttr(one).value for one in ir.ArrayAttr(group)]
        for group in ir.ArrayAttr(owner.attributes["reassociation"])
    ]
    unknown = (i for i in dimensions if type_.is_dynamic_dim(i))
    return int(factor) * prod(known_factor(owner.operands[0], groups[i]) for i in unknown)
