"""Integers of a body that are constants, or fields of a packed byte, and so need no operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc.mlir import ir
from aotc.ops import integer, known_constant

_BYTE = 0xFF
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_SIGN = 0x80


class Known(Struct, frozen=True):
    """A known number that is not negative."""

    number: int


class Field(Struct, frozen=True):
    """(byte >> shift) & mask, or with `is_signed`, the byte as a signed number. `sign`: the highest
    bit of the value's type, if the type is narrow; the operation that reads the field determines
    whether that bit is a sign. `less`: a number that is then subtracted; the difference is
    signed."""

    shift: int
    mask: int
    is_signed: bool = False
    sign: int = 0
    less: int = 0

    @staticmethod
    def of_byte() -> Field:
        return Field(0, _BYTE, sign=_SIGN)

    @property
    def bias(self) -> int:
        """The number that is added to a signed number to make it unsigned."""
        return _SIGN if self.is_signed else 0


def int_of(value: Any) -> Known | None:
    """The value of a constant integer; None if it is negative, or no constant."""
    attribute = known_constant(value)
    if not isinstance(attribute, ir.IntegerAttr | ir.BoolAttr):
        return None
    number = int(attribute.value)
    return Known(number) if number >= 0 else None


def integer_result(operation: Any, given: Sequence[Any]) -> Known | Field | None:
    """The result of an operation on known numbers and fields; None if it is neither of these."""
    name = operation.name
    if given and all(isinstance(one, Known) for one in given):
        return _of_known(operation, [one.number for one in given])
    field = given[0] if given else None
    if not isinstance(field, Field):
        return None
    if field.less:
        return field if name == "arith.extsi" else None
    width = getattr(operation.results[0].type, "width", 0)
    if name == "arith.extui" and not field.is_signed:
        return Field(field.shift, field.mask)
    if name == "arith.extsi":
        return _signed(field)
    if name == "arith.trunci":
        if field.is_signed:
            return None
        return Field(field.shift, field.mask & (1 << width) - 1, sign=1 << (width - 1))
    if len(given) < 2 or not isinstance(given[1], Known) or field.is_signed:
        return None
    number = given[1].number
    has_sign = bool(field.mask & field.sign)
    # No difference exceeds the range of 8 bits, nor that of a narrower type.
    if name == "arith.subi" and not (field.mask & _SIGN or has_sign) and number <= _SIGN:
        return Field(field.shift, field.mask, less=number)
    if name == "arith.andi":
        return Field(field.shift, field.mask & number, sign=field.sign)
    is_shift = name == "arith.shrui" or (name == "arith.shrsi" and not has_sign)
    if is_shift and number < 8:
        return Field(field.shift + number, field.mask >> number, sign=field.sign)
    return None


def float_field(operation: Any, given: Sequence[Any]) -> Field | None:
    """The field that an operation converts to a float; None for another operation."""
    field = given[0] if given else None
    if not isinstance(field, Field):
        return None
    if operation.name == "arith.sitofp":
        return _signed(field)
    has_sign = field.is_signed or field.less
    return field if operation.name == "arith.uitofp" and not has_sign else None


def _signed(field: Field) -> Field | None:
    """The field as a signed number; None if its sign is not that of the byte."""
    if field.less:
        return field
    if not field.mask & field.sign:
        return Field(field.shift, field.mask, field.is_signed)
    return Field(0, _BYTE, is_signed=True) if field.mask == _BYTE else None


def _of_known(operation: Any, numbers: Sequence[int]) -> Known | None:
    name = operation.name.partition(".")[2]
    if name in ("index_cast", "index_castui", "extui", "extsi", "trunci"):
        width = getattr(operation.results[0].type, "width", 64)
        # The only bit of an i1 that is true is a sign.
        is_negative = (
            numbers[0] > 0
            and name in ("index_cast", "extsi")
            and operation.operands[0].type == integer(1)
        )
        return Known(numbers[0]) if numbers[0] < 1 << (width - 1) and not is_negative else None
    if name == "select":
        return Known(numbers[1] if numbers[0] else numbers[2])
    if len(numbers) != 2:
        return None
    left, right = numbers
    if name == "cmpi":
        predicate = _PREDICATES[ir.IntegerAttr(operation.attributes["predicate"]).value]
        return Known(int(_compare(predicate[-2:], left, right)))
    made = {
        "addi": left + right,
        "muli": left * right,
        "andi": left & right,
        "minui": min(left, right),
        "maxui": max(left, right),
    }.get(name)
    width = getattr(operation.results[0].type, "width", 64)
    return None if made is None or made >= 1 << (width - 1) else Known(made)


def _compare(predicate: str, left: int, right: int) -> bool:
    return {
        "eq": left == right,
        "ne": left != right,
        "lt": left < right,
        "le": left <= right,
        "gt": left > right,
        "ge": left >= right,
    }[predicate]
