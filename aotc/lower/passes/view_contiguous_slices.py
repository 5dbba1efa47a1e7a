"""`aotc-view-contiguous-slices`: contiguous slices of buffers of unknown sizes get a type that says
so.

A `memref.subview` of some channels of an image of any size has strides that its type does not say,
`strided<[?, ?, 1], offset: ?>`, though its elements are contiguous. Kernels for contiguous buffers
could not write or read it. It becomes a `memref.view` of the buffer's bytes, which has no strides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.attributes import RANGE_ATTRIBUTE
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir
from aotc.sizes import element_bytes
from aotc.slices import DYNAMIC, Mixed, mixed_lists

_RESHAPES = ("memref.expand_shape", "memref.collapse_shape")
# As `aotc-concatenate-in-place` aligns slices, in bytes.
_ALIGNMENT = 64
# Users for which the type of the buffer does not determine that of a result.
_USERS = ("memref.dim", "memref.load", "memref.store", "memref.copy", "memref.dealloc")
# A size that equals no other one.
_UNKNOWN = float("nan")


class ViewContiguousSlices(OwnPass, frozen=True):
    """Runs when buffers are freed, so that their frees are known."""

    name = "aotc-view-contiguous-slices"
    reason: str = "kernels see that slices of buffers of unknown sizes are contiguous"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for alloc in ops.find(lowering.module.operation, "memref.alloc"):
                (result,) = alloc.results
                if not _is_plain(result.type):
                    continue
                whole = _Part(result, _sizes(result.type, alloc.operands))
                slices = [(user, _slice(user, whole)) for user in _users(result)]
                found = [(user, one) for user, one in slices if one and _has_plain_users(one)]
                if found:
                    _view(alloc, found)


class _Part(Struct, frozen=True):
    """A contiguous part of a buffer: its sizes, the range of its elements' indices along the
    dimension of which it is a part, and the sizes behind that dimension."""

    value: Any
    sizes: list[Mixed]
    range: tuple[int, int] = (0, 0)
    inner: list[Mixed] | None = None


def _users(value: Any) -> list[Any]:
    return [use.owner.operation for use in value.uses]


def _is_plain(type_: Any) -> bool:
    """Whether it is the type of numbers in a buffer of unknown size, without a layout. Its first
    size is known: it is multiplied by the bytes of an element."""
    if type_.rank and type_.is_dynamic_dim(0):
        return False
    is_identity = type_.affine_map == ir.AffineMap.get_identity(type_.rank)
    is_known = type_.has_static_shape or type_.memory_space is not None or not is_identity
    return not is_known and _bytes(type_) > 0


def _bytes(type_: Any) -> int:
    """The bytes of an element; 0 if the data layout may pad it."""
    element = type_.element_type
    is_number = isinstance(element, (ir.FloatType, ir.IntegerType)) and element.width >= 8
    return (is_number and element_bytes(element)) or 0


def _sizes(type_: Any, dynamic: Sequence[Any]) -> list[Mixed]:
    values = iter(dynamic)
    return [next(values) if size == DYNAMIC else size for size in type_.shape]


def _slice(subview: Any, source: _Part) -> _Part | None:
    """The part that a `memref.subview` is, if it is one of at most one dimension, is contiguous
    and begins at a vector's alignment."""
    if subview.name != "memref.subview":
        return None
    (result,) = subview.results
    offsets, own, strides = mixed_lists(subview)
    different = [i for i, one in enumerate(source.sizes) if own[i] != one or offsets[i] != 0]
    sizes = _sizes(result.type, [one for one in own if not isinstance(one, int)])
    if any(one != 1 for one in strides) or len(different) > 1:
        return None
    if not different:
        return _Part(result, sizes, source.range, source.inner)
    (dim,) = different
    inner = [one for one in source.sizes[dim + 1 :] if one != 1]
    if source.inner not in (None, inner) or any(one != 1 for one in source.sizes[:dim]):
        return None
    if not isinstance(offsets[dim], int) or not isinstance(own[dim], int):
        return None
    first = source.range[0] + offsets[dim]
    if first * _step(result.type, inner) % _ALIGNMENT != 0:
        return None
    return _Part(result, sizes, (first, first + own[dim]), inner)


def _step(type_: Any, inner: Sequence[Mixed]) -> int:
    """The bytes between adjacent elements, without the factors of unknown sizes."""
    return _bytes(type_) * math.prod(one for one in inner if isinstance(one, int))


def _has_plain_users(part: _Part) -> bool:
    """Whether all users may have the part as a buffer without a layout."""
    return all(
        user.name in _USERS or user.name.startswith("linalg.")
        if inner is None
        else _has_plain_users(inner)
        for user, inner in _inner_parts(part)
    )


def _inner_parts(part: _Part) -> Iterator[tuple[Any, _Part | None]]:
    """The users of a part, and the part that each of them is, if it is one."""
    for user in _users(part.value):
        if user.name in _RESHAPES:
            sizes = _reshaped(user, part.sizes)
            yield user, _Part(user.results[0], sizes, part.range, part.inner)
        else:
            yield user, _slice(user, part)


def _reshaped(reshape: Any, sizes: Sequence[Mixed]) -> list[Mixed]:
    type_ = reshape.results[0].type
    if reshape.name == "memref.expand_shape":
        return _sizes(type_, list(reshape.operands)[1:])
    groups = [[sizes[i] for i in group if sizes[i] != 1] for group in ops.groups_of(reshape)]
    return [
        size if size != DYNAMIC else group[0] if len(group) == 1 else _UNKNOWN
        for size, group in zip(type_.shape, groups, strict=True)
    ]


def _view(alloc: Any, slices: Sequence[tuple[Any, _Part]]) -> None:
    """Allocates the buffer as bytes, of which the buffer and the slices are views."""
    old, byte = alloc.results[0], ops.integer(8)
    first, *rest = old.type.shape
    with alloc.location, ir.InsertionPoint(alloc):
        # With the sizes of the buffer: buffers of equal sizes may share memory.
        shape = [_bytes(old.type) * first, *rest]
        allocated = ops.alloc(ir.MemRefType.get(shape, byte), alloc.operands)
        for name, value in ops.attributes_of(alloc).items():
            allocated.owner.attributes[name] = value
        flat = ir.MemRefType.get([DYNAMIC], byte)
        groups = {"reassociation": ops.reassociation([range(old.type.rank)])}
        memory = ops.create("memref.collapse_shape", [allocated], [flat], groups).result
        operands = [memory, ops.constant_index(0), *alloc.operands]
        whole = ops.create("memref.view", operands, [old.type]).result
    for subview, part in slices:
        _replace(part, _view_of(subview, part, memory), memory)
    for use in list(old.uses):
        is_free = use.owner.name == "memref.dealloc"
        use.owner.operands[use.operand_number] = allocated if is_free else whole
    ops.erase(alloc)


def _view_of(subview: Any, part: _Part, memory: Any) -> Any:
    type_, inner = part.value.type, part.inner or []
    with subview.location, ir.InsertionPoint(subview):
        at = ops.constant_index(part.range[0] * _step(type_, inner))
        for size in inner:
            if not isinstance(size, int):
                at = ops.index_op("arith.muli", at, size)
        attributes = {}
        if part.inner is not None:
            attributes[RANGE_ATTRIBUTE] = ir.DenseI64ArrayAttr.get(part.range)
        sizes = [one for one in part.sizes if not isinstance(one, int)]
        result = ir.MemRefType.get(type_.shape, type_.element_type)
        return ops.create("memref.view", [memory, at, *sizes], [result], attributes).result


def _replace(part: _Part, new: Any, memory: Any) -> None:
    """Replaces a part by a view without a layout, and parts of it likewise. Erases what made it."""
    for user, inner in list(_inner_parts(part)):
        if inner is None:
            continue
        if user.name in _RESHAPES:
            operands = [new, *itertools.islice(user.operands, 1, None)]
            with user.location, ir.InsertionPoint(user):
                type_ = ir.MemRefType.get(inner.value.type.shape, new.type.element_type)
                made = ops.create(user.name, operands, [type_], ops.attributes_of(user)).result
        else:
            made = _view_of(user, inner, memory)
        _replace(inner, made, memory)
    part.value.replace_all_uses_with(new)
    ops.erase(part.value.owner)
