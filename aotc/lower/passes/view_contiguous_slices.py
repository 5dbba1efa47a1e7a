"""`aotc-view-contiguous-slices`: contiguous slices of buffers of unknown sizes get a type that says
so.

A `memref.subview` of some channels of an image of any size has strides that its type does not say,
`strided<[?, ?, 1], offset: ?>`, though its elements are contiguous. Kernels for contiguous buffers
could not write or read it. It becomes a `memref.view` of the buffer's bytes, which has no strides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from aotc import ops
from aotc.attributes import RANGE_ATTRIBUTE
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir
from aotc.sizes import element_bytes
from aotc.slices import Mixed, mixed_lists

_RESHAPES = ("memref.expand_shape", "memref.collapse_shape")
# As `aotc-concatenate-in-place` aligns slices, in bytes.
_ALIGNMENT = 64
# Users for which the type of the buffer does not determine that of a result.
_USERS = ("memref.dim", "memref.load", "memref.store", "memref.copy", "memref.dealloc")


class ViewContiguousSlices(OwnPass, frozen=True):
    """Runs when buffers are freed, so that their frees are known."""

    name = "aotc-view-contiguous-slices"
    reason: str = "kernels see that slices of buffers of unknown sizes are contiguous"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for alloc in ops.find(lowering.module.operation, "memref.alloc"):
                slices = [user for user in _users(alloc.results[0]) if _is_slice(user, alloc)]
                if slices and _is_plain(alloc.results[0].type):
                    _view(alloc, slices)


def _users(value: Any) -> list[Any]:
    return [use.owner.operation for use in value.uses]


def _is_plain(type_: Any) -> bool:
    """Whether it is the type of numbers in a buffer of unknown size, without a layout."""
    if type_.has_static_shape:
        return False
    return type_.memory_space is None and _is_identity(type_) and _bytes(type_) is not None


def _is_identity(type_: Any) -> bool:
    return bool(type_.affine_map == ir.AffineMap.get_identity(type_.rank))


def _bytes(type_: Any) -> int | None:
    """The bytes of an element; None if the data layout may pad it."""
    element = type_.element_type
    is_number = isinstance(element, (ir.FloatType, ir.IntegerType)) and element.width >= 8
    return element_bytes(element) if is_number else None


def _is_slice(user: Any, alloc: Any) -> bool:
    """Whether an operation takes a contiguous slice of the buffer, whose type hides that."""
    if user.name != "memref.subview" or _is_identity(user.results[0].type):
        return False
    sizes = list(_mixed_sizes(alloc))
    offsets, own, strides = mixed_lists(user)
    dim = _sliced(user, alloc)
    return (
        dim is not None
        and isinstance(offsets[dim], int)
        and offsets[dim] * _step(alloc, dim) % _ALIGNMENT == 0
        and all(one == 1 for one in (*sizes[:dim], *strides))
        and all(isinstance(one, int) for one in (*offsets, own[dim]))
        and own[dim + 1 :] == sizes[dim + 1 :]
        and _has_plain_users(user.results[0])
    )


def _sliced(subview: Any, alloc: Any) -> int | None:
    """The dimension along which a slice is a part of the buffer; None if there are several."""
    offsets, own, _ = mixed_lists(subview)
    sizes = _mixed_sizes(alloc)
    parts = [i for i, size in enumerate(sizes) if own[i] != size or offsets[i] != 0]
    return parts[0] if len(parts) == 1 else None


def _step(alloc: Any, dim: int) -> int:
    """The bytes between adjacent elements along a dimension, without the factors of unknown
    sizes."""
    inner = list(_mixed_sizes(alloc))[dim + 1 :]
    return (_bytes(alloc.results[0].type) or 1) * math.prod(
        one for one in inner if isinstance(one, int)
    )


def _mixed_sizes(alloc: Any) -> Iterator[Mixed]:
    type_, values = alloc.results[0].type, iter(alloc.operands)
    for i, size in enumerate(type_.shape):
        yield next(values) if type_.is_dynamic_dim(i) else size


def _has_plain_users(value: Any) -> bool:
    return all(
        user.name in _USERS or user.name.startswith("linalg.")
        for user in ops.users_through(value, _RESHAPES)
    )


def _view(alloc: Any, slices: list[Any]) -> None:
    """Allocates the buffer as bytes, of which the buffer and the slices are views."""
    old = alloc.results[0]
    width, byte = _bytes(old.type) or 1, ops.integer(8)
    first, *rest = old.type.shape
    with alloc.location, ir.InsertionPoint(alloc):
        # With the sizes of the buffer: buffers of equal sizes may share memory.
        allocated = ops.alloc(ir.MemRefType.get([width * first, *rest], byte), alloc.operands)
        for name, value in ops.attributes_of(alloc).items():
            allocated.owner.attributes[name] = value
        flat = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], byte)
        groups = {"reassociation": ops.reassociation([range(old.type.rank)])}
        memory = ops.create("memref.collapse_shape", [allocated], [flat], groups).result
        operands = [memory, ops.constant_index(0), *alloc.operands]
        whole = ops.create("memref.view", operands, [old.type]).result
    for subview in slices:
        _replace(subview, _view_slice(subview, alloc, memory))
    for use in list(old.uses):
        is_free = use.owner.name == "memref.dealloc"
        use.owner.operands[use.operand_number] = allocated if is_free else whole
    ops.erase(alloc)


def _view_slice(subview: Any, alloc: Any, memory: Any) -> Any:
    dim = _sliced(subview, alloc) or 0
    offsets, own, _ = mixed_lists(subview)
    type_ = alloc.results[0].type
    with subview.location, ir.InsertionPoint(subview):
        at = ops.constant_index(offsets[dim] * _step(alloc, dim))
        sizes = [one for one in own if not isinstance(one, int)]
        for size in sizes:
            at = ops.index_op("arith.muli", at, size)
        bounds = ir.DenseI64ArrayAttr.get([offsets[dim], offsets[dim] + own[dim]])
        result = ir.MemRefType.get(subview.results[0].type.shape, type_.element_type)
        attributes = {RANGE_ATTRIBUTE: bounds}
        return ops.create("memref.view", [memory, at, *sizes], [result], attributes).result


def _replace(old: Any, new: Any) -> None:
    """Replaces a value by one of the same shape, and reshapes of it likewise. Erases what made
    it."""
    for user in _users(old.results[0]):
        if user.name in _RESHAPES:
            operands = [new, *itertools.islice(user.operands, 1, None)]
            with user.location, ir.InsertionPoint(user):
                result = ir.MemRefType.get(user.results[0].type.shape, new.type.element_type)
                made = ops.create(user.name, operands, [result], ops.attributes_of(user)).result
            _replace(user, made)
    old.results[0].replace_all_uses_with(new)
    ops.erase(old)
