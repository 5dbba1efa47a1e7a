"""Views: values that stand for a buffer, or for a part of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from aotc import ops
from aotc.attributes import RANGE_ATTRIBUTE
from aotc.mlir import ir
from aotc.slices import DYNAMIC, static_lists

# Operations whose result is (a part of) the buffer that is their first operand.
VIEWS = (
    "memref.cast",
    "memref.subview",
    "memref.reinterpret_cast",
    "memref.expand_shape",
    "memref.collapse_shape",
    "memref.transpose",
    "memref.view",
    "memref.reshape",
    "memref.memory_space_cast",
    "memref.assume_alignment",
)

# Views whose elements are all elements of their operand.
_WITHIN = (
    *("memref.cast", "memref.subview", "memref.expand_shape", "memref.collapse_shape"),
    *("memref.transpose", "memref.memory_space_cast", "memref.assume_alignment"),
)


def root_of(value: Any, views: Collection[str] = VIEWS) -> Any:
    """The value that `value` is a view of: an allocation, a block argument, a selection, ..."""
    owner = ops.defining(value)
    while owner is not None and owner.name in views:
        value = owner.operands[0]
        owner = ops.defining(value)
    return value


def are_disjoint(one: Any, other: Any) -> bool:
    """Whether two views are known to have no element in common, as they are parts of one buffer
    with static offsets, sizes and strides that do not overlap."""
    return any(
        ours.operands[0] == theirs.operands[0] and _lie_apart(ours, theirs)
        for ours in _parts(one)
        for theirs in _parts(other)
    )


def _parts(value: Any) -> list[Any]:
    """The views of parts on the chain of views from a value to its root."""
    found = []
    owner = ops.defining(value)
    while owner is not None:
        if owner.name == "memref.subview" or RANGE_ATTRIBUTE in owner.attributes:
            found.append(owner)
        elif owner.name not in _WITHIN:
            break
        owner = ops.defining(owner.operands[0])
    return found


def _lie_apart(one: Any, other: Any) -> bool:
    """Whether two views of one memref have disjoint index ranges in some dimension."""
    if RANGE_ATTRIBUTE in one.attributes and RANGE_ATTRIBUTE in other.attributes:
        (first, end), (other_first, other_end) = map(_range, (one, other))
        return end <= other_first or other_end <= first
    if "memref.view" in (one.name, other.name):
        return False
    dimensions = (zip(*static_lists(subview), strict=True) for subview in (one, other))
    for ours, theirs in zip(*dimensions, strict=True):
        if DYNAMIC in (*ours, *theirs):
            continue
        (first, size, step), (other_first, other_size, other_step) = ours, theirs
        last, other_last = first + (size - 1) * step, other_first + (other_size - 1) * other_step
        if step > 0 < other_step and (last < other_first or other_last < first):
            return True
    return False


def _range(view: Any) -> list[int]:
    return list(ir.DenseI64ArrayAttr(view.attributes[RANGE_ATTRIBUTE]))
