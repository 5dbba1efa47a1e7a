"""Static slices of tensors, and those of the operands of reshapes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from aotc import ops
from aotc.analysis.effects import is_pure
from aotc.attributes import CHECK_ATTRIBUTE
from aotc.mlir import ir
from aotc.slices import extract_slice, static_lists

# Operations that may be executed later and for fewer elements, as pure ones may.
_MOVABLE = ("tensor.extract", "scf.if", "scf.for", "scf.yield", "linalg.yield")


class Range(NamedTuple):
    """The elements of one dimension that a slice has."""

    offset: int
    size: int
    stride: int


# One range for each dimension of the tensor.
Slice = tuple[Range, ...]


def whole(size: int) -> Range:
    return Range(0, size, 1)


def read_slice(operation: Any) -> Slice | None:
    """The slice that a `tensor.extract_slice` makes; None if part of it is dynamic."""
    source = operation.operands[0].type
    if len(operation.operands) != 1 or not source.has_static_shape:
        return None
    # The stride of one element says nothing.
    return tuple(
        Range(offset, size, stride if size > 1 else 1)
        for offset, size, stride in zip(*static_lists(operation), strict=True)
    )


def is_movable(operation: Any) -> bool:
    """Whether the operation depends on its operands alone, not on memory or loop indices, and
    cannot fail: it may be executed later, and not for elements outside of a slice."""
    return all(
        (is_pure(one) or one.name in _MOVABLE) and CHECK_ATTRIBUTE not in one.attributes
        for one in ops.walk(operation)
    )


def sliced_type(type_: Any, part: Slice) -> Any:
    """The type of a tensor's slice, with all dimensions."""
    return ir.RankedTensorType.get([one.size for one in part], type_.element_type, type_.encoding)


def extract(tensor: Any, part: Slice, kept: Sequence[int] | None = None) -> Any:
    """The slice of a tensor, at the insertion point; the tensor, if that is all of it. `kept` are
    the dimensions of the result; the others, of which the slice has one element, are dropped."""
    kept = range(len(part)) if kept is None else kept
    if part == tuple(map(whole, tensor.type.shape)) and len(kept) == len(part):
        return tensor
    type_ = sliced_type(tensor.type, tuple(part[i] for i in kept))
    owner = ops.defining(tensor)
    if owner is not None and owner.name == "tensor.empty":
        return ops.create("tensor.empty", [], [type_]).result
    return extract_slice(tensor, type_, *zip(*part, strict=True))


def drop_units(tensor: Any, type_: Any) -> Any:
    """The tensor without dimensions of size 1 that `type_` does not have."""
    shape, wanted = list(tensor.type.shape), list(type_.shape)
    if shape == wanted:
        return tensor
    groups: list[list[int]] = []
    kept = 0
    for dimension, size in enumerate(shape):
        is_kept = kept < len(wanted) and wanted[kept] == size
        # Those in front of the first one are its.
        if not groups or (is_kept and kept):
            groups.append([])
        groups[-1].append(dimension)
        kept += is_kept
    attributes = {"reassociation": ops.reassociation(groups if wanted else [])}
    return ops.create("tensor.collapse_shape", [tensor], [type_], attributes).result


def collapsed(part: Sequence[Range], shape: Sequence[int]) -> Range | None:
    """The range of one dimension whose elements are those of a slice of several, of `shape`; None
    if they have no one stride."""
    offset = sum(one.offset * _step(shape, i) for i, one in enumerate(part))
    many = [i for i, one in enumerate(part) if one.size > 1]
    if not many:
        return Range(offset, 1, 1)
    first, last = many[0], many[-1]
    if any(part[i] != whole(shape[i]) for i in range(first + 1, last + 1)):
        return None
    size = prod(one.size for one in part)
    # Elements of the first of several dimensions follow each other where all of the last ones are
    # read.
    if first != last and part[first].stride != 1:
        return None
    stride = part[first].stride if first == last else 1
    return Range(offset, size, stride * _step(shape, last))


def expanded(part: Range, shape: Sequence[int]) -> Slice | None:
    """The slice of several dimensions of `shape` whose elements are those of a range of the one
    that they collapse to; None if there is none."""
    places = [part.offset // _step(shape, i) % size for i, size in enumerate(shape)]
    single = [Range(place, 1, 1) for place in places]
    if part.size == 1:
        return tuple(single)
    for i, size in enumerate(shape):
        step = _step(shape, i)
        if part.stride % step == 0:
            stride = part.stride // step
            if places[i] + (part.size - 1) * stride < size:
                return (*single[:i], Range(places[i], part.size, stride), *single[i + 1 :])
        elif part.stride == 1 and part.offset % step == 0 and part.size % step == 0:
            count = part.size // step
            if places[i] + count <= size:
                return (*single[:i], Range(places[i], count, 1), *map(whole, shape[i + 1 :]))
    return None


def _step(shape: Sequence[int], dimension: int) -> int:
    """The distance of two elements that follow each other along a dimension."""
    return prod(shape[dimension + 1 :])
