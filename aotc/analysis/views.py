"""Views: values that stand for a buffer, or for a part of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from aotc import ops

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


def root_of(value: Any, views: Collection[str] = VIEWS) -> Any:
    """What `value` is a view of: an allocation, a block argument, a selection, ..."""
    owner = ops.defining(value)
    while owner is not None and owner.name in views:
        value = owner.operands[0]
        owner = ops.defining(value)
    return value
