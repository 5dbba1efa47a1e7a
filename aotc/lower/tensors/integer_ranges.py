"""Ranges of integer tensors and scalars, derived from the operations that compute them.

A float that an integer was converted to has the integer's range; any other one is unbounded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from aotc import ops
from aotc.analysis.generics import RESHAPES, has_reduction, loop_sizes
from aotc.lower.tensors.known_tensors import KnownTensors
from aotc.mlir import ir

# The minimum and the maximum, both inclusive, as signed values.
Range = tuple[int, int]

_INDEX_BITS = 64
# The limits of a float whose range is unknown: no float is as large.
_UNBOUNDED = 1 << 1024
_CONVERSIONS = (
    *("arith.extui", "arith.extsi", "arith.trunci", "arith.index_castui", "arith.index_cast"),
    *("arith.sitofp", "arith.fptosi"),
)
# Operations whose extremes are among their results for the operands' extremes.
_CORNERS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.maxsi": max,
    "arith.minsi": min,
}
# Floats that contain all integers up to this size.
_EXACT = {"f32": 1 << 24, "f64": 1 << 53}
# Predicates of `arith.cmpi`.
_EQ, _NE, _SLT, _SLE, _SGT, _SGE, _ULT, _ULE = range(8)
_SIGNED_OF_UNSIGNED = _ULT - _SLT
_REVERSED = {_SGT: _SLT, _SGE: _SLE}
# The i1 of a comparison.
_I1 = {False: (0, 0), True: (-1, -1), None: (-1, 0)}
# The type's own range is as good for elements of at most this number of bits.
_BYTE_BITS = 8


def range_of(tensor: Any, steps: int, found: dict[Any, Range] | None = None) -> Range:
    """The range of a tensor's elements, looking through at most `steps` operations. `found` keeps
    the ranges of tensors and scalars, for a caller that looks through many. Without it, those of
    this call are kept: a value may be used many times on the way."""
    found = {} if found is None else found
    if tensor not in found:
        found[tensor] = _range_of(tensor, steps, found)
    return found[tensor]


def _range_of(tensor: Any, steps: int, found: dict[Any, Range]) -> Range:
    producer = ops.defining(tensor)
    element = tensor.type.element_type
    if producer is None or steps == 0:
        return range_of_type(element)
    if producer.name in (*RESHAPES, "tensor.cast", "tensor.extract_slice"):
        return range_of(producer.operands[0], steps - 1, found)
    if producer.name == "arith.constant" and (known := _range_of_constant(producer)) is not None:
        return known
    if producer.name != "linalg.generic" or has_reduction(producer):
        return range_of_type(element)
    number = [result == tensor for result in producer.results].index(True)
    ranges = ranges_in(producer, steps, found)
    return range_of_scalar(ops.content(producer)[-1].operands[number], ranges, steps - 1, found)


def ranges_in(generic: Any, steps: int, found: dict[Any, Range] | None = None) -> dict[Any, Range]:
    """The ranges of the arguments of an operation's body and of its loops' indices. `found`: as for
    `range_of`."""
    inputs, _ = ops.operand_groups(generic)
    ranges = {
        argument: range_of(value, steps - 1, found)
        if isinstance(value.type, ir.RankedTensorType)
        else range_of_scalar(value, {}, steps - 1, found)
        for argument, value in zip(generic.regions[0].blocks[0].arguments, inputs, strict=False)
        if _is_number(argument.type)
    }
    indices = [one for one in ops.content(generic) if one.name == "linalg.index"]
    sizes = loop_sizes(generic) if indices else {}
    for index in indices:
        size = sizes.get(ir.IntegerAttr(index.attributes["dim"]).value)
        if size:
            ranges[index.results[0]] = (0, size - 1)
    return ranges


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


def range_of_scalar(
    value: Any, known: dict[Any, Range], steps: int, found: dict[Any, Range] | None = None
) -> Range:
    """The range of an integer or an index. `known`: the ranges of values that it may be computed
    from. `found`: as for `range_of`."""
    if value in known:
        return known[value]
    found = {} if found is None else found
    if value not in found:
        found[value] = _range_of_scalar(value, known, steps, found)
    return found[value]


def _range_of_scalar(
    value: Any, known: dict[Any, Range], steps: int, found: dict[Any, Range]
) -> Range:
    widest = range_of_type(value.type)
    operation = ops.defining(value)
    if operation is None or steps == 0:
        return widest
    if operation.name == "arith.constant":
        return _range_of_constant(operation) or widest
    if operation.name == "tensor.extract":
        return range_of(operation.operands[0], steps - 1, found)
    numbers = [one for one in operation.operands if _is_number(one.type)]
    ranges = [range_of_scalar(one, known, steps - 1, found) for one in numbers]
    result = _computed(operation, ranges)
    return result if result and widest[0] <= result[0] and result[1] <= widest[1] else widest


def _computed(operation: Any, operands: Sequence[Range]) -> Range | None:
    """The range of an operation's result for unbounded integers; None if unknown."""
    if operation.name in _CONVERSIONS:
        return _converted(operation, *operands)
    if operation.name == "arith.cmpi":
        predicate = ir.IntegerAttr(operation.attributes["predicate"]).value
        return _I1[decided(predicate, *operands)]
    if operation.name == "arith.select":
        condition, yes, no = operands
        if condition[0] == condition[1]:
            return yes if condition[0] else no
        return min(yes[0], no[0]), max(yes[1], no[1])
    if operation.name == "arith.andi":
        if all(least == largest for least, largest in operands):
            both = operands[0][0] & operands[1][0]
            return both, both
        bounds = [largest for least, largest in operands if least >= 0]
        return (0, min(bounds)) if bounds else None
    if operation.name == "math.absi":
        least, largest = operands[0]
        return max(least, -largest, 0), max(-least, largest)
    corners = _CORNERS.get(operation.name)
    if corners is None:
        return None
    found = [corners(one, other) for one in operands[0] for other in operands[1]]
    return min(found), max(found)


def _converted(operation: Any, operand: Range) -> Range | None:
    source, result = operation.operands[0].type, operation.results[0].type
    if operation.name in ("arith.extui", "arith.index_castui"):
        return operand if operand[0] >= 0 else (0, (1 << bits_of(source)) - 1)
    if operation.name in ("arith.sitofp", "arith.fptosi"):
        # No integer has the range of a NaN.
        limit = _EXACT.get(str(result if is_integer(source) else source), 0)
        return operand if max(map(abs, operand)) <= limit else None
    return operand


def decided(predicate: int, left: Range, right: Range) -> bool | None:
    """The result of an `arith.cmpi`; None if the ranges do not determine it."""
    if predicate in (_EQ, _NE):
        are_apart = left[1] < right[0] or right[1] < left[0]
        are_equal = left == right and left[0] == left[1]
        return (predicate == _NE) == are_apart if are_apart or are_equal else None
    if predicate >= _ULT:
        if left[1] < 0 <= right[0]:
            return predicate > _ULE
        if left[0] < 0 or right[0] < 0:
            return None
        predicate -= _SIGNED_OF_UNSIGNED
    if predicate in _REVERSED:
        predicate, left, right = _REVERSED[predicate], right, left
    # Now a comparison with < or <=.
    or_equal = int(predicate == _SLE)
    if left[1] < right[0] + or_equal:
        return True
    return False if left[0] >= right[1] + or_equal else None


def range_of_type(type_: Any) -> Range:
    """The range of a signed integer type, of an index, or of floats."""
    if isinstance(type_, ir.FloatType):
        return -_UNBOUNDED, _UNBOUNDED
    half = 1 << bits_of(type_) - 1
    return -half, half - 1


def is_integer(type_: Any) -> bool:
    """Whether values of a type are integers or indices, not vectors of them."""
    return isinstance(type_, ir.IntegerType | ir.IndexType)


def _is_number(type_: Any) -> bool:
    return is_integer(type_) or isinstance(type_, ir.FloatType)


def bits_of(type_: Any) -> int:
    """The bits of an integer or an index."""
    return _INDEX_BITS if isinstance(type_, ir.IndexType) else int(type_.width)
