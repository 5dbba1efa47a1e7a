"""Numbers in kernel builders: Python ints, if known while the kernel is built, or SSA values.

A number is a Python int, or a `Scalar`: a value of type index or of an integer type. Both have the
same operators, so `row * 64 + lane` creates operations only for operands that are not known.
Operations are inserted at the current insertion point of the bindings.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir
from aotc.ops import create

# An `ir.Value` of any type.
Value = Any

_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


class Scalar(ir.Value):  # type: ignore[misc]
    """A value of type index or of an integer type, with Python's operators.

    Division, remainder and right shift are unsigned. An operand that is a Python int becomes a
    constant of this value's type; an identity (`x + 0`, `x * 1`) creates no operation. The
    operators of i1 values (`&`, `|`) accept a bool as well. There are no comparison operators,
    because `==` tests whether two values are the same SSA value: see `compare`.
    """

    def __add__(self, other: Number) -> Scalar:
        return self if is_equal(other, 0) else _binary("arith.addi", self, other)

    def __radd__(self, other: int) -> Scalar:
        return self if is_equal(other, 0) else _binary("arith.addi", other, self)

    def __sub__(self, other: Number) -> Scalar:
        return self if is_equal(other, 0) else _binary("arith.subi", self, other)

    def __rsub__(self, other: int) -> Scalar:
        return _binary("arith.subi", other, self)

    def __mul__(self, other: Number) -> Number:
        if is_equal(other, 0):
            return 0
        return self if is_equal(other, 1) else _binary("arith.muli", self, other)

    def __rmul__(self, other: int) -> Number:
        if is_equal(other, 0):
            return 0
        return self if is_equal(other, 1) else _binary("arith.muli", other, self)

    def __floordiv__(self, other: Number) -> Scalar:
        return self if is_equal(other, 1) else _binary("arith.divui", self, other)

    def __rfloordiv__(self, other: int) -> Scalar:
        return _binary("arith.divui", other, self)

    def __mod__(self, other: Number) -> Number:
        return 0 if is_equal(other, 1) else _binary("arith.remui", self, other)

    def __rmod__(self, other: int) -> Number:
        return _binary("arith.remui", other, self)

    def __and__(self, other: Number) -> Any:
        if isinstance(other, bool):
            return self if other else False
        return _binary("arith.andi", self, other)

    __rand__ = __and__

    def __or__(self, other: Number) -> Any:
        if isinstance(other, bool):
            return True if other else self
        return self if is_equal(other, 0) else _binary("arith.ori", self, other)

    __ror__ = __or__

    def __xor__(self, other: Number) -> Scalar:
        return self if is_equal(other, 0) else _binary("arith.xori", self, other)

    __rxor__ = __xor__

    def __lshift__(self, other: Number) -> Scalar:
        return self if is_equal(other, 0) else _binary("arith.shli", self, other)

    def __rlshift__(self, other: int) -> Scalar:
        return _binary("arith.shli", other, self)

    def __rshift__(self, other: Number) -> Scalar:
        return self if is_equal(other, 0) else _binary("arith.shrui", self, other)


Number = int | Scalar
# A value of type i1, or a bool that is known while the kernel is built.
Condition = bool | Scalar


def is_equal(number: Number, known: int) -> bool:
    return isinstance(number, int) and number == known


def constant_of(type_: Any, number: int) -> Scalar:
    """Inserts an `arith.constant` of an index or integer type of the bindings."""
    attribute = ir.IntegerAttr.get(type_, number)
    return Scalar(create("arith.constant", (), [type_], {"value": attribute}).result)


def _operands(left: Number, right: Number) -> tuple[Value, Value, Any]:
    """Two numbers as values, and their type: index if neither is a value."""
    value = right if isinstance(left, int) else left
    type_ = ir.IndexType.get() if isinstance(value, int) else value.type
    first = constant_of(type_, left) if isinstance(left, int) else left
    second = constant_of(type_, right) if isinstance(right, int) else right
    return first, second, type_


def _binary(name: str, left: Number, right: Number) -> Scalar:
    first, second, type_ = _operands(left, right)
    return Scalar(create(name, [first, second], [type_]).result)


class Float(ir.Value):  # type: ignore[misc]
    """A value of a float type, with Python's operators. Each operator rounds: no two of them may be
    contracted into one operation."""

    def __add__(self, other: Float) -> Float:
        return _float("arith.addf", self, other)

    def __sub__(self, other: Float) -> Float:
        return _float("arith.subf", self, other)

    def __mul__(self, other: Float) -> Float:
        return _float("arith.mulf", self, other)

    def __truediv__(self, other: Float) -> Float:
        return _float("arith.divf", self, other)

    def __neg__(self) -> Float:
        return _float("arith.negf", self)


def _float(name: str, *operands: Float) -> Float:
    return Float(create(name, operands, [operands[0].type]).result)


def fma(x: Float, y: Float, z: Float) -> Float:
    """x * y + z, rounded once."""
    return _float("math.fma", x, y, z)


def maximum_number(x: Float, y: Float) -> Float:
    """The maximum of two floats; if one of them is NaN, the other one."""
    return _float("arith.maxnumf", x, y)


def minimum(left: Number, right: Number) -> Number:
    """The minimum of two unsigned numbers."""
    if isinstance(left, int) and isinstance(right, int):
        return min(left, right)
    return _binary("arith.minui", left, right)


def maximum(left: Number, right: Number) -> Number:
    """The maximum of two unsigned numbers."""
    if isinstance(left, int) and isinstance(right, int):
        return max(left, right)
    return _binary("arith.maxui", left, right)


def signed_minimum(left: Number, right: Number) -> Number:
    """The minimum of two signed numbers."""
    if isinstance(left, int) and isinstance(right, int):
        return min(left, right)
    return _binary("arith.minsi", left, right)


def signed_maximum(left: Number, right: Number) -> Number:
    """The maximum of two signed numbers."""
    if isinstance(left, int) and isinstance(right, int):
        return max(left, right)
    return _binary("arith.maxsi", left, right)


def divide_up(left: Number, right: Number) -> Number:
    """The quotient, rounded up: (left + right - 1) // right; the sum must not overflow."""
    return (left + (right - 1)) // right


def ceil_divide(left: Number, right: Number) -> Number:
    """The quotient, rounded up, as one operation (`arith.ceildivui`), which cannot overflow."""
    if isinstance(left, int) and isinstance(right, int):
        return -(-left // right)
    return _binary("arith.ceildivui", left, right)


def compare_values(predicate: str, left: Value, right: Value) -> Value:
    """Inserts an `arith.cmpi` of two values of the same type, scalars or vectors."""
    return wrap(ops.compare(_PREDICATES.index(predicate), left, right))


def compare(predicate: str, left: Number, right: Number) -> Scalar:
    """Inserts an `arith.cmpi`. `predicate`: eq, ne; slt, sle, sgt, sge for signed numbers; ult,
    ule, ugt, uge for unsigned ones. Two ints are compared as index."""
    first, second, _ = _operands(left, right)
    return Scalar(compare_values(predicate, first, second))


def select(condition: Condition, yes: Number, no: Number) -> Number:
    """`yes` if the condition holds, otherwise `no`."""
    if isinstance(condition, bool):
        return yes if condition else no
    if isinstance(yes, int) and isinstance(no, int) and yes == no:
        return yes
    first, second, type_ = _operands(yes, no)
    return Scalar(create("arith.select", [condition, first, second], [type_]).result)


def next_in_ring(number: Number, count: int) -> Number:
    """The number after `number` of those from 0 to `count`, such as stages of a pipeline."""
    following = number + 1
    return select(compare("eq", following, count), 0, following)


def unravel(number: Number, *counts: Number) -> list[Number]:
    """The digits of `number` in a mixed radix; `counts` are the extents of all digits except the
    first. The last digit varies fastest."""
    digits: list[Number] = []
    for count in reversed(counts):
        digits.insert(0, number % count)
        number = number // count
    return [number, *digits]


def wrap(value: Value) -> Value:
    """A value of an integer type as a `Scalar`, of a float type as a `Float`; any other value
    unchanged."""
    kind = _WRAPPERS.get(type(value.type))
    return value if kind is None else kind(value)


_FLOAT_TYPES = (ir.F16Type, ir.BF16Type, ir.F32Type, ir.F64Type)
_WRAPPERS: dict[Any, Any] = {
    **dict.fromkeys((ir.IndexType, ir.IntegerType), Scalar),
    **dict.fromkeys(_FLOAT_TYPES, Float),
}
