"""Offsets, sizes and strides of operations on slices: `tensor.extract_slice`, `memref.subview`, ...

A number is static, in an attribute, or dynamic, in an operand. Mixed lists contain an int or a
value for each dimension (MLIR's `OpFoldResult`). The same holds for the two lists of `tensor.pad`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from aotc import ops
from aotc.mlir import ir

# An int or a value.
Mixed = Any

# What the attributes contain in place of a dynamic number.
DYNAMIC: int = ir.ShapedType.get_dynamic_size()

_OF_SLICE = ("static_offsets", "static_sizes", "static_strides")
_OF_PAD = ("static_low", "static_high")


def static_lists(operation: Any) -> list[list[int]]:
    """The offsets, the sizes and the strides, where `DYNAMIC` is a dynamic one. Of `tensor.pad`,
    the low and the high padding."""
    names = _OF_PAD if operation.name == "tensor.pad" else _OF_SLICE
    return [list(ir.DenseI64ArrayAttr(operation.attributes[name])) for name in names]


def mixed_lists(operation: Any) -> list[list[Mixed]]:
    """As `static_lists`, with values for dynamic numbers."""
    lists = static_lists(operation)
    # The groups before them are the operands that are sliced, inserted or padded.
    groups = map(iter, ops.operand_groups(operation)[-len(lists) :])
    return [
        [next(values) if one == DYNAMIC else one for one in static]
        for static, values in zip(lists, groups, strict=True)
    ]


def static_numbers(mixed: Iterable[Mixed]) -> list[int]:
    """The numbers with `DYNAMIC` in place of values."""
    return [one if isinstance(one, int) else DYNAMIC for one in mixed]


def create_slice(
    name: str,
    operands: Sequence[Any],
    type_: Any,
    offsets: Sequence[Mixed],
    sizes: Sequence[Mixed],
    strides: Sequence[Mixed] | None = None,
) -> Any:
    """The result of an operation on a slice, at the insertion point. `operands` are those before
    the dynamic numbers; strides are 1 by default."""
    lists = [offsets, sizes, [1] * len(sizes) if strides is None else strides]
    dynamic = [[one for one in mixed if not isinstance(one, int)] for mixed in lists]
    segments = [*[1] * len(operands), *map(len, dynamic)]
    attributes = {
        attribute: ir.DenseI64ArrayAttr.get(static_numbers(mixed))
        for attribute, mixed in zip(_OF_SLICE, lists, strict=True)
    }
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(segments)
    return ops.create(name, [*operands, *chain.from_iterable(dynamic)], [type_], attributes).result


def extract_slice(
    tensor: Any,
    type_: Any,
    offsets: Sequence[Mixed],
    sizes: Sequence[Mixed],
    strides: Sequence[Mixed] | None = None,
) -> Any:
    """A slice of a tensor, at the insertion point."""
    return create_slice("tensor.extract_slice", [tensor], type_, offsets, sizes, strides)
