"""Ranges of integer tensors and scalars, derived from the operations that compute them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.analysis.generics import RESHAPES, has_reduction
from aotc.lower.tensors.known_tensors import KnownTensors
from aotc.mlir import ir

# The minimum and the maximum, both inclusive, as signed values.
Range = tuple[int, int]

_INDEX_BITS = 64
# The type's own range is as good for elements of at most this number of bits.
_BYTE_BITS = 8


def range_of(tensor: Any, steps: int) -> Range:
    """The range of a tensor's elements, looking through at most `steps` operations."""
    producer = ops.defining(tensor)
    element = tensor.type.element_type
    if producer is None or steps == 0:
        return range_of_type(element)
    if producer.name in (*RESHAPES, "tensor.cast", "tensor.extract_slice"):
        return range_of(producer.operands[0], steps - 1)
    if producer.name == "arith.constant" and (known := _range_of_constant(producer)) is not None:
        return known
    if producer.name != "linalg.generic" or has_reduction(producer):
        return range_of_type(element)
    number = [result == tensor for result in producer.results].index(True)
    ranges = ranges_in(producer, steps)
    return range_of_scalar(ops.content(producer)[-1].operands[number], ranges, steps - 1)


def ranges_in(generic: Any, steps: int) -> dict[Any, Range]:
    """The ranges of the integer arguments of an operation's body."""
    inputs, _ = ops.operand_groups(generic)
    return {
        argument: range_of(value, steps - 1)
        if isinstance(value.type, ir.RankedTensorType)
        else range_of_scalar(value, {}, steps - 1)
        for argument, value in zip(generic.regions[0].blocks[0].arguments, inputs, strict=False)
        if is_integer(argument.type)
    }


def _range_of_constant(constant: Any) -> Range | None:
    attribute = constant.attributes["value"]
    if isinstance(attribute, ir.BoolAttr):
        return (-1, -1) if attribute.value else (0, 0)
    if isinstance(attribute, ir.IntegerAttr):
        return attribute.value, attribute.value
    if isinstance(attribute, ir.DenseIntElementsAttr) and attribute.is_splat:
        value = ir.IntegerAttr(attribute.get_splat_value()).value
        return value, value
    type_ = constant.results[0].type
    if not isinstance(type_, ir.RankedTensorType) or not is_integer(type_.element_type):
        return None
    if bits_of(type_.element_type) <= _BYTE_BITS:
        return None
    array = KnownTensors().of(constant.results[0])
    return None if array is None or not array.size else (int(array.min()), int(array.max()))


def range_of_scalar(value: Any, known: dict[Any, Range], steps: int) -> Range:
    """The range of an integer or an index. `known`: the ranges of values that it may be computed
    from."""
    widest = range_of_type(value.type)
    if value in known:
        return known[value]
    operation = ops.defining(value)
    if operation is None or steps == 0:
        return widest
    if operation.name == "arith.constant":
        return _range_of_constant(operation) or widest
    if operation.name == "tensor.extract":
        return range_of(operation.operands[0], steps - 1)
    integers = [one for one in operation.operands if is_integer(one.type)]
    found = _computed(operation, [range_of_scalar(one, known, steps - 1) for one in integers])
    return found if found and widest[0] <= found[0] and found[1] <= widest[1] else widest


def _computed(operation: Any, operands: Sequence[Range]) -> Range | None:
    """The range of an operation's result for unbounded integers; None if unknown."""
    if operation.name in ("arith.extui", "arith.index_castui"):
        (least, largest), bits = operands[0], bits_of(operation.operands[0].type)
        return (least, largest) if least >= 0 else (0, (1 << bits) - 1)
    if operation.name in ("arith.extsi", "arith.trunci", "arith.index_cast"):
        return operands[0]
    if operation.name == "arith.select":
        condition, yes, no = operands
        if condition[0] == condition[1]:
            return yes if condition[0] else no
        return min(yes[0], no[0]), max(yes[1], no[1])
    if operation.name == "arith.andi":
        bounds = [largest for least, largest in operands if least >= 0]
        return (0, min(bounds)) if bounds else None
    if operation.name == "arith.addi":
        return operands[0][0] + operands[1][0], operands[0][1] + operands[1][1]
    if operation.name == "arith.subi":
        return operands[0][0] - operands[1][1], operands[0][1] - operands[1][0]
    if operation.name == "arith.muli":
        corners = [one * other for one in operands[0] for other in operands[1]]
        return min(corners), max(corners)
    return None


def range_of_type(type_: Any) -> Range:
    """The range of a signed integer type, or of an index."""
    half = 1 << bits_of(type_) - 1
    return -half, half - 1


def is_integer(type_: Any) -> bool:
    """Whether values of a type are integers or indices, not vectors of them."""
    return isinstance(type_, ir.IntegerType | ir.IndexType)


def bits_of(type_: Any) -> int:
    """The bits of an integer or an index."""
    return _INDEX_BITS if isinstance(type_, ir.IndexType) else int(type_.width)
