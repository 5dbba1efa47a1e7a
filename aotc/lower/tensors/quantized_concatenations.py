"""Quantizes the operands of a concatenation instead of the concatenation.

A concatenation of floats that is quantized, with one scale and zero point, is a concatenation of
the quantized operands. So the kernel that computes an operand rounds it and writes its bytes into
their place. Otherwise each reader would round again, and a pool as often as its windows overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.analysis.generics import has_reduction, maps_of
from aotc.mlir import ir

_BYTE = 8
# The limit of operations between the concatenation and the bytes.
_MOST_STEPS = 8


def quantize_operands(concat: Any) -> bool:
    """Replaces a `tensor.concat` and the elementwise operations that make bytes of it. Returns
    whether it did."""
    steps = _steps_to_bytes(concat.results[0])
    if steps is None:
        return False
    last = steps[-1]
    with last.location, ir.InsertionPoint(last):
        operands = [_quantized(operand, steps) for operand in concat.operands]
        clone = concat.clone()
        for place, operand in enumerate(operands):
            clone.operands[place] = operand
        clone.results[0].set_type(last.results[0].type)
        ops.replace(last, [clone.results[0]])
    for step in reversed(steps[:-1]):
        ops.erase(step)
    ops.erase(concat)
    return True


def _steps_to_bytes(value: Any) -> list[Any] | None:
    """The operations that convert a tensor of floats to bytes, each the only user of the one
    before. None if there are none."""
    if not isinstance(value.type.element_type, ir.FloatType):
        return None
    byte, steps, block = (
        ir.IntegerType.get_signless(_BYTE),
        list[Any](),
        value.owner.operation.block,
    )
    while len(steps) < _MOST_STEPS:
        users = [use.owner.operation for use in value.uses]
        # In a loop, a step would be repeated.
        if len(users) != 1 or users[0].block != block or not _is_of_one_element(users[0], value):
            return None
        steps.append(users[0])
        value = users[0].results[0]
        if value.type.element_type == byte:
            return steps
    return None


def _is_of_one_element(user: Any, value: Any) -> bool:
    """Whether an element of the result depends on that element of `value` alone."""
    if user.name != "linalg.generic" or has_reduction(user) or len(user.results) != 1:
        return False
    inputs, _ = ops.operand_groups(user)
    identity = ir.AffineMap.get_identity(value.type.rank)
    *_, out = user.regions[0].blocks[0].arguments
    return (
        list(inputs) == [value]
        and all(map_ == identity for map_ in maps_of(user))
        and not list(out.uses)
        and all(op.name != "linalg.index" and not op.regions for op in ops.content(user))
    )


def _quantized(operand: Any, steps: Sequence[Any]) -> Any:
    """The operand after all steps."""
    value, sizes, shape = operand, ops.dynamic_sizes(operand), list(operand.type.shape)
    for step in steps:
        type_ = ir.RankedTensorType.get(shape, step.results[0].type.element_type)
        made = step.clone()
        made.operands[0] = value
        with ir.InsertionPoint(made):
            made.operands[1] = ops.create("tensor.empty", sizes, [type_]).result
        made.results[0].set_type(type_)
        value = made.results[0]
    return value
