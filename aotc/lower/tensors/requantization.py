"""Requantization: one multiplication by a quotient of scales instead of a division.

Between two quantized matmuls, an integer accumulator n is multiplied by its scale s, a bias b is
added, and the result is divided by the next scale t, rounded, moved by a zero point and clamped:

    round((n * s + b) / t) = round(n * (s / t) + b / t)

The quotients are computed at build time in f64, and rounded to f32 once. A result differs from
that of the division by one step if rounding to an integer decides between two values, as in other
integer kernels. A rounded and clamped float is a value of a byte. If it is dequantized in the same
body, for example to add a residual, the float is used and no byte is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from aotc import ops
from aotc.analysis.generics import has_reduction
from aotc.lower.tensors.known_tensors import SMALL, KnownTensors
from aotc.mlir import ir

_LARGEST, _SMALLEST = "arith.maxnumf", "arith.minnumf"
_LIMITS = (_LARGEST, _SMALLEST, "arith.maximumf", "arith.minimumf")
_SUMS = ("arith.addf", "arith.subf")
_FROM_INTEGER = {"arith.sitofp": "arith.extsi", "arith.uitofp": "arith.extui"}
_RANGES = {"arith.fptosi": (-128, 127), "arith.fptoui": (0, 255)}
_BYTE, _SUM_BITS = 8, 32


def simplify_requantization(module: Any) -> None:
    """Changes `module`, in which elementwise operations are fused, in place."""
    with module.context:
        for generic in ops.find(module.operation, "linalg.generic"):
            if not has_reduction(generic) and _sums_in(generic):
                with generic.location:
                    _simplify(generic)


def _sums_in(generic: Any) -> list[Any]:
    """The conversions of integer accumulators to f32 in the body."""
    return [
        op
        for op in ops.content(generic)
        if op.name == "arith.sitofp"
        and _is_integer(op.operands[0], _SUM_BITS)
        and str(op.results[0].type) == "f32"
    ]


def _is_integer(value: Any, bits: int) -> bool:
    return isinstance(value.type, ir.IntegerType) and value.type.width == bits


def _simplify(generic: Any) -> None:
    scales = _Scales(generic)
    for operation in ops.content(generic):
        if operation.name == "arith.addf" and _is_moved_by_zero(operation):
            operation.results[0].replace_all_uses_with(operation.operands[0])
    for operation in ops.content(generic):
        if operation.name in _FROM_INTEGER:
            _keep_float(operation)
    for operation in ops.content(generic):
        if operation.name == "arith.muli":
            scales.fold_product(operation)
        elif operation.name == "arith.divf" and _is_rounded(operation.results[0]):
            scales.fold_division(operation)
    for operation in reversed(ops.content(generic)[:-1]):
        results = list(operation.results)
        if results and not any(list(result.uses) for result in results):
            ops.erase(operation)


def _is_rounded(value: Any) -> bool:
    users = [use.owner.operation for use in value.uses]
    return bool(users) and all(user.name == "math.roundeven" for user in users)


def _is_moved_by_zero(add: Any) -> bool:
    """Whether an addition of a zero point of 0 can be removed: its operand is rounded, and its
    result is clamped. The addition changes only -0.0, which becomes the same integer as 0.0."""
    users = [use.owner.operation for use in add.results[0].uses]
    made = ops.defining(add.operands[0])
    return (
        _number(add.operands[1]) == 0
        and made is not None
        and made.name == "math.roundeven"
        and all(user.name == _LARGEST for user in users)
    )


def _number(value: Any) -> float | None:
    attribute = ops.known_constant(value)
    if not isinstance(attribute, ir.FloatAttr | ir.IntegerAttr):
        return None
    number: float = attribute.value
    return number


def _keep_float(conversion: Any) -> None:
    """Replaces the conversion of a byte to a float by the float that the byte was made from, minus
    the zero point. The float must be known to be an integer in the byte's range."""
    value, zero = conversion.operands[0], 0.0
    subtract = ops.defining(value)
    if subtract is not None and subtract.name == "arith.subi":
        number = _number(subtract.operands[1])
        if number is None or abs(number) > 1 << _BYTE:
            return
        value, zero = subtract.operands[0], float(number)
    widen = ops.defining(value)
    kind = conversion.name if zero == 0 else None
    if widen is not None and widen.name in _FROM_INTEGER.values():
        value, kind = widen.operands[0], widen.name
    made = ops.defining(value)
    if made is None or made.name not in _RANGES or not _is_integer(value, _BYTE):
        return
    is_unsigned = made.name == "arith.fptoui"
    if kind != ("arith.extui" if is_unsigned else "arith.extsi") and kind != (
        "arith.uitofp" if is_unsigned else "arith.sitofp"
    ):
        return
    if conversion.name == "arith.uitofp" and (zero or not is_unsigned):
        # The conversion of a negative number gives a large positive one.
        return
    number = made.operands[0]
    if number.type != conversion.results[0].type or not _is_byte(number, _RANGES[made.name]):
        return
    with conversion.location, ir.InsertionPoint(conversion):
        if zero:
            number = ops.binary("arith.subf", number, ops.constant(number.type, zero))
    conversion.results[0].replace_all_uses_with(number)


def _is_byte(value: Any, limits: tuple[int, int]) -> bool:
    """Whether a float is known to be an integer within the limits, and not NaN."""
    known = []
    for name in (_SMALLEST, _LARGEST):
        operation = ops.defining(value)
        if operation is None or operation.name != name:
            return False
        known.append(_number(operation.operands[1]))
        value = operation.operands[0]
    most, least = known
    if most is None or least is None or not limits[0] <= least <= most <= limits[1]:
        return False
    operation = ops.defining(value)
    if operation is not None and operation.name == "arith.addf":
        zero = _number(operation.operands[1])
        if zero is None or not zero.is_integer() or abs(zero) > 1 << _BYTE:
            return False
        operation = ops.defining(operation.operands[0])
    is_whole = most.is_integer() and least.is_integer()
    return is_whole and operation is not None and operation.name == "math.roundeven"


class _Scales:
    """Multiplies the constants of a body: scalars, and elements of constant tensors."""

    def __init__(self, generic: Any) -> None:
        self._generic, self._known = generic, KnownTensors()
        self._arguments = list(generic.regions[0].blocks[0].arguments)

    def fold_product(self, multiply: Any) -> None:
        """Folds the product of a constant integer tensor and a constant into the tensor."""
        factor = _number(multiply.operands[1])
        if factor is not None:
            number = int(factor)
            folded = self._tensor_times(multiply.operands[0], lambda array: array * number)
            if folded is not None:
                multiply.results[0].replace_all_uses_with(folded)

    def fold_division(self, divide: Any) -> None:
        """Replaces the division of a scaled integer accumulator by a multiplication."""
        value, scale = divide.operands
        divisor = _number(scale)
        if divisor is None or not 0 < divisor < math.inf or str(value.type) != "f32":
            return
        factor = 1 / divisor
        if _is_of_sum(value) and _is_normal(np.array(factor)):
            with divide.location, ir.InsertionPoint(divide):
                product = self._times(value, factor)
            divide.results[0].replace_all_uses_with(product)

    def _times(self, value: Any, factor: float) -> Any:
        """`value` times a positive factor, which is folded into constants where possible."""
        number = _number(value)
        if number is not None and _is_normal(np.array(number * factor)):
            return ops.constant(value.type, _rounded(number * factor))
        operation: Any = ops.defining(value)
        if operation is None:
            folded = self._tensor_times(value, lambda array: array * factor)
            return self._product(value, factor) if folded is None else folded
        if len(list(value.uses)) > 1:
            return self._product(value, factor)
        if operation.name in (*_SUMS, *_LIMITS):
            left, right = (self._times(one, factor) for one in operation.operands)
            return _contracted(operation.name, left, right)
        if operation.name == "arith.mulf":
            left, right = operation.operands
            if self._is_constant(left):
                left, right = right, left
            if self._is_constant(right):
                return _contracted("arith.mulf", left, self._times(right, factor))
        return self._product(value, factor)

    def _product(self, value: Any, factor: float) -> Any:
        return _contracted("arith.mulf", value, ops.constant(value.type, _rounded(factor)))

    def _is_constant(self, value: Any) -> bool:
        return _number(value) is not None or self._operand_of(value) is not None

    def _operand_of(self, value: Any) -> int | None:
        """The index of the operand whose elements are the value, if it is a constant tensor and the
        body uses the value once; otherwise None."""
        if value not in self._arguments[:-1] or len(list(value.uses)) > 1:
            return None
        number = self._arguments.index(value)
        tensor = self._generic.operands[number]
        is_tensor = isinstance(tensor.type, ir.RankedTensorType)
        return number if is_tensor and self._known.has(tensor) else None

    def _tensor_times(self, value: Any, multiply: Callable[[np.ndarray], Any]) -> Any | None:
        """The value with its constant tensor replaced by the product with a factor. None if the
        elements are not known, or if a product is not a normal number."""
        number = self._operand_of(value)
        if number is None:
            return None
        array = self._known.of(self._generic.operands[number])
        if array is None or array.nbytes > SMALL:
            return None
        is_float = array.dtype.kind == "f"
        product = multiply(array.astype(np.float64 if is_float else np.int64))
        if is_float and not _is_normal(product):
            return None
        type_ = self._generic.operands[number].type
        result = np.ascontiguousarray(product.astype(array.dtype))
        attribute = ir.DenseElementsAttr.get(result, type=type_.element_type, shape=result.shape)
        with ir.InsertionPoint(self._generic):
            self._generic.operands[number] = ops.constant_from(attribute)
        return value


def _is_of_sum(value: Any) -> bool:
    """Whether a value is computed from an integer accumulator."""
    operation = ops.defining(value)
    if operation is None:
        return False
    if operation.name in (*_SUMS, *_LIMITS, "arith.mulf"):
        return any(_is_of_sum(one) for one in operation.operands)
    if operation.name == "arith.sitofp":
        return _is_integer(operation.operands[0], _SUM_BITS)
    # A byte that is used as the float it was made from (see `_keep_float`).
    return str(operation.name) == "math.roundeven"


def _is_normal(numbers: np.ndarray) -> bool:
    limits, absolute = np.finfo(np.float32), np.abs(numbers)
    return bool(((absolute == 0) | (limits.tiny <= absolute) & (absolute <= limits.max)).all())


def _rounded(number: float) -> float:
    return float(np.float32(number))


def _contracted(name: str, left: Any, right: Any) -> Any:
    """An operation that may become one with another."""
    flags = {"fastmath": ir.Attribute.parse("#arith.fastmath<contract>")}
    return ops.create(name, [left, right], [left.type], flags).result
