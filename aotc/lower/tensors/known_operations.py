"""Scalar operations that the build evaluates on NumPy arrays with the same result as a device.

These are the arithmetic of IEEE 754, which NumPy and the devices share, and logarithms, which
relative position buckets use. Other functions (exp, ...) are left to the device.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np

from aotc.mlir import ir

_DIGITS = 30  # decimal digits for a logarithm
# Element types with arithmetic. Elements of other types can only be moved.
BIT = "b"
NUMBERS = {
    "i1": np.dtype(bool),
    **{f"i{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
    "index": np.dtype("i8"),
}


def apply(operation: Any, operands: list[np.ndarray]) -> np.ndarray | None:
    """The result of a scalar operation for each element; None if the device must compute it."""
    types = [value.type for value in (*operation.operands, *operation.results)]
    if operation.name == "tensor.extract":
        return _elements(*operands)
    if not all(str(type_) in NUMBERS for type_ in types):
        return None
    result = NUMBERS[str(operation.results[0].type)]
    # As an i1, 1 is -1 and 1 + 1 is 0, which NumPy's booleans do not follow.
    is_bit = BIT in (operands[0].dtype.kind, result.kind)
    if operation.name in (_OF_BITS if is_bit else _SAME):
        return _SAME[operation.name](*operands)
    if operation.name in _CASTS and not is_bit:
        with np.errstate(over="ignore"):  # an overflow gives infinity
            return operands[0].astype(result)
    if operation.name in _FROM_BITS:
        unsigned = operands[0]
        if unsigned.dtype.kind != BIT:
            unsigned = unsigned.view(f"u{unsigned.dtype.itemsize}")
        return unsigned.astype(result)
    if operation.name == "arith.select":
        return np.where(*operands)
    if operation.name == "arith.fptosi":
        return _to_integers(operands[0], result)
    if operation.name == "arith.fptoui" and not is_bit:
        return _to_unsigned(operands[0], result)
    if operation.name in ("arith.cmpf", "arith.cmpi"):
        return _compare(operation, *operands)
    if operation.name == "math.rsqrt":
        # This is rounded twice, so it is correctly rounded except for about one in many millions;
        # the device is no more accurate.
        return (1 / np.sqrt(operands[0].astype(np.float64))).astype(result)
    return None


def _elements(array: np.ndarray, *indices: np.ndarray) -> np.ndarray | None:
    """The elements at the indices; None if an index is out of bounds."""
    pairs = zip(indices, array.shape, strict=True)
    if not all(((index >= 0) & (index < size)).all() for index, size in pairs):
        return None
    return array[indices] if indices else array


def _to_integers(array: np.ndarray, type_: np.dtype[Any]) -> np.ndarray | None:
    """Truncates to signed integers. A value that is too low becomes the minimum, as on all devices.
    None if a value is too high or NaN, which devices convert differently."""
    least = np.iinfo(type_).min
    cut = np.trunc(array)
    if not (cut < -float(least)).all():
        return None
    is_low = cut < float(least)
    found = np.where(is_low, 0, cut).astype(type_)
    found[is_low] = least
    return found


def _to_unsigned(array: np.ndarray, type_: np.dtype[Any]) -> np.ndarray | None:
    """Truncates to unsigned integers, returned in the bits of `type_`; None if a value is out of
    range."""
    unsigned = np.dtype(f"u{type_.itemsize}")
    cut = np.trunc(array)
    if not ((cut >= 0) & (cut <= np.iinfo(unsigned).max)).all():
        return None
    found: np.ndarray = cut.astype(unsigned).view(type_)
    return found


def _logarithm(array: np.ndarray) -> np.ndarray:
    """The natural logarithm, rounded once from more digits than f64 has. It is the same on each
    machine that builds, which NumPy's is not."""
    values, places = np.unique(array, return_inverse=True)
    context = decimal.Context(prec=_DIGITS)
    logarithms = [
        float(decimal.Decimal(float(value)).ln(context)) if 0 < value < np.inf else np.log(value)
        for value in values
    ]
    return np.array(logarithms).astype(array.dtype)[places].reshape(array.shape)


_Function = Callable[..., np.ndarray]


def _maximum(left: np.ndarray, right: np.ndarray, larger_of: _Function = np.maximum) -> np.ndarray:
    """IEEE 754's maximum; with `larger_of=np.fmax`, its maximumNumber. NumPy does not specify the
    sign of a zero result, so +0 is preferred here."""
    return np.where((left == 0) & (right == 0), left + right, larger_of(left, right))


_SAME: dict[str, _Function] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.negf": np.negative,
    "math.sqrt": np.sqrt,
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maximumf": _maximum,
    "arith.minimumf": lambda left, right: -_maximum(-left, -right),
    "arith.maxnumf": lambda left, right: _maximum(left, right, np.fmax),
    "arith.minnumf": lambda left, right: -_maximum(-left, -right, np.fmax),
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.ceil": np.ceil,
    "math.floor": np.floor,
    "math.log": _logarithm,
    "math.roundeven": np.rint,
}
_OF_BITS = ("arith.andi", "arith.ori", "arith.xori")
_FROM_BITS = ("arith.extui", "arith.uitofp")
# Casts that are exact, round to the nearest even value, or truncate integers.
_CASTS = (
    *("arith.extf", "arith.truncf", "arith.sitofp", "arith.extsi", "arith.trunci"),
    "arith.index_cast",
)
# Predicate number of arith.cmpi → comparison; the unsigned predicates are 4 higher.
_INTEGERS: dict[int, _Function] = {
    0: np.equal,
    1: np.not_equal,
    2: np.less,
    3: np.less_equal,
    4: np.greater,
    5: np.greater_equal,
}
# Ordered predicate number of arith.cmpf → comparison; the unordered ones are 7 higher.
_FLOATS: dict[int, _Function] = {
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
    6: np.not_equal,
}
_ORDERED, _UNORDERED = 7, 14


def _compare(operation: Any, left: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    predicate = ir.IntegerAttr(operation.attributes["predicate"]).value
    if operation.name == "arith.cmpi":
        if left.dtype.kind == BIT:
            return None
        if predicate in _INTEGERS:
            return _INTEGERS[predicate](left, right)
        unsigned = np.dtype(f"u{left.dtype.itemsize}")
        compared: np.ndarray = _INTEGERS[predicate - 4](left.view(unsigned), right.view(unsigned))
        return compared
    numbers: np.ndarray = ~(np.isnan(left) | np.isnan(right))
    found = numbers
    if predicate in _FLOATS:
        found = _FLOATS[predicate](left, right) & numbers
    elif predicate - _ORDERED in _FLOATS:
        found = _FLOATS[predicate - _ORDERED](left, right) | ~numbers
    elif predicate == _UNORDERED:
        found = ~numbers
    elif predicate != _ORDERED:
        return None
    return found
