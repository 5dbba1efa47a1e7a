"""Replaces elementwise functions of a single byte by a lookup in a table of 256 values.

Between quantized layers, an activation function is a function of bytes: a sequence of operations,
each with its own scale. The table is computed when the program runs, by the same operations as the
elements, so its values have the same bits.

Quantizing a byte that was dequantized with the same scale gives the same byte. This is detected by
evaluating the operations for all 256 bytes. So a pooling between the two reads and writes bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from aotc import ops
from aotc.analysis.effects import is_division
from aotc.analysis.generics import has_reduction, maps_of
from aotc.lower.tensors.known_operations import apply
from aotc.lower.tensors.known_tensors import KnownTensors
from aotc.mlir import ir
from aotc.rewrites.cloning import copy

_BYTE, _VALUES = 8, 256
# From about this number of elements on, a table and a buffer of bytes are worth it.
_LEAST_ELEMENTS = 64 * _VALUES
# Approximate clock cycles of an operation on a vector of 16 elements. A lookup of all 16 takes
# about one cycle per element.
_CLOCKS = {"arith.divf": 10, "math.roundeven": 1, "math.absf": 1}
_CLOCKS_OF_FUNCTION, _LEAST_CLOCKS = 20, 40


def create_lookup_tables(module: Any) -> None:
    """Changes `module`, whose elementwise operations are fused, in place."""
    with module.context:
        for generic in ops.find(module.operation, "linalg.generic"):
            while _bypass_identity(generic):
                pass
            if not _is_large(generic):
                continue
            for byte in _bytes_of(generic):
                operations = _operations(generic, byte, ops.content(generic)[-1].operands[0])
                if operations is not None and _clocks(operations) >= _LEAST_CLOCKS:
                    with generic.location, ir.InsertionPoint(generic):
                        _replace(generic, byte, operations)
                    break


def _bypass_identity(generic: Any) -> bool:
    """Replaces a byte that is computed from another byte, and is always equal to it, by that byte.

    Returns whether one was replaced.
    """
    bytes_ = [] if has_reduction(generic) else _bytes_of(generic)
    for byte, later in combinations(bytes_, 2):
        if ops.defining(later) is None:
            continue
        operations = _operations(generic, byte, later)
        if operations and _keeps_bytes(operations, byte, later):
            later.replace_all_uses_with(byte)
            for operation in reversed(operations):
                if not any(list(result.uses) for result in operation.results):
                    ops.erase(operation)
            return True
    return False


def _keeps_bytes(operations: Sequence[Any], byte: Any, result: Any) -> bool:
    """Whether the operations are known at build time to be the identity on all bytes."""
    every = np.arange(_VALUES, dtype=np.uint8).view(np.int8)
    known, constants = {byte: every}, KnownTensors()
    for operation in operations:
        found = [known.get(one, constants.of(one)) for one in operation.operands]
        operands = [one for one in found if one is not None]
        if len(operands) < len(found):
            return False
        with np.errstate(all="ignore"):  # for bytes that may not occur in the program
            computed = apply(operation, operands)
        if computed is None:
            return False
        known[operation.results[0]] = computed
    return bool(np.array_equal(known[result], every))


def _is_large(generic: Any) -> bool:
    """Whether the operation is elementwise and computes one tensor with enough elements for a
    table."""
    if len(generic.results) != 1 or has_reduction(generic):
        return False
    type_ = generic.results[0].type
    old = list(generic.regions[0].blocks[0].arguments)[-1]
    return (
        type_.has_static_shape
        and math.prod(type_.shape) >= _LEAST_ELEMENTS
        and maps_of(generic)[-1] == ir.AffineMap.get_identity(type_.rank)
        and not list(old.uses)
    )


def _bytes_of(generic: Any) -> list[Any]:
    """The bytes that the operation reads or computes, in order."""
    arguments = list(generic.regions[0].blocks[0].arguments)[:-1]
    computed = [result for operation in ops.content(generic) for result in operation.results]
    byte = ir.IntegerType.get_signless(_BYTE)
    return [value for value in (*arguments, *computed) if value.type == byte]


def _operations(generic: Any, byte: Any, result: Any) -> list[Any] | None:
    """The operations that compute `result` from `byte` and from scalars defined outside.

    None if the result depends on anything else, or if an operation could trap for one of the 256
    bytes, which may not occur.
    """
    found: list[Any] = []

    def visit(value: Any) -> bool:
        operation = ops.defining(value)
        if value == byte:
            return True
        if operation is None:
            return _is_scalar(generic, value)
        if operation.parent != generic or operation in found:
            return True
        if not operation.name.startswith(("arith.", "math.")) or is_division(operation):
            return False
        is_of_byte = all(visit(operand) for operand in operation.operands)
        found.append(operation)
        return is_of_byte

    return found if visit(result) and byte != result else None


def _is_scalar(generic: Any, argument: Any) -> bool:
    """Whether an argument of the body is the same for all elements."""
    arguments = list(generic.regions[0].blocks[0].arguments)
    if argument not in arguments:
        return True  # it is defined outside of the operation
    type_ = generic.operands[arguments.index(argument)].type
    return not isinstance(type_, ir.ShapedType) or type_.rank == 0


def _clocks(operations: Sequence[Any]) -> int:
    return sum(
        _CLOCKS.get(one.name, 1 if one.name.startswith("arith.") else _CLOCKS_OF_FUNCTION)
        for one in operations
    )


def _replace(generic: Any, byte: Any, operations: Sequence[Any]) -> None:
    table = _table(generic, byte, operations)
    source, map_ = _tensor_of(generic, byte)
    type_ = generic.results[0].type

    def look_up(value: Any) -> Any:
        index = ops.unary("arith.index_castui", value, ir.IndexType.get())
        return ops.create("tensor.extract", [table, index], [type_.element_type]).result

    ops.replace(generic, [ops.create_elementwise([source], type_, [], look_up, [map_])])


def _table(generic: Any, byte: Any, operations: Sequence[Any]) -> Any:
    """The table's tensor: the results for all bytes, indexed by the byte as an unsigned number."""
    (result,) = ops.content(generic)[-1].operands
    arguments = list(generic.regions[0].blocks[0].arguments)[:-1]
    scalars = [one for one in arguments if _is_scalar(generic, one)]
    type_ = ir.RankedTensorType.get([_VALUES], result.type)
    inputs = [generic.operands[arguments.index(one)] for one in scalars]

    def compute(*given: Any) -> Any:
        known = dict(zip(scalars, given, strict=True))
        known[byte] = ops.unary("arith.index_cast", ops.loop_index(0), byte.type)
        for operation in operations:
            copy(operation, known)
        return known[result]

    maps = [ir.AffineMap.get(1, 0, [])] * len(scalars)
    return ops.create_elementwise(inputs, type_, [], compute, maps)


def _tensor_of(generic: Any, byte: Any) -> tuple[Any, Any]:
    """The tensor of the bytes, and the map from the result's elements to it. If the operation does
    not read the bytes but computes them, an operation that computes this tensor is inserted."""
    arguments = list(generic.regions[0].blocks[0].arguments)
    maps = maps_of(generic)
    if byte in arguments:
        number = arguments.index(byte)
        return generic.operands[number], maps[number]
    inputs, _ = ops.operand_groups(generic)
    type_ = ir.RankedTensorType.get(list(generic.results[0].type.shape), byte.type)
    empty = ops.create("tensor.empty", [], [type_]).result
    body = ops.content(generic)
    last = body.index(ops.defining(byte))

    def compute(*elements: Any) -> Any:
        known = dict(zip(arguments, elements, strict=True))
        for operation in body[: last + 1]:
            copy(operation, known)
        return known[byte]

    return ops.create_generic([*inputs, empty], maps, compute).result, maps[-1]
