"""Operations on values: constants, conversions and arithmetic, as `Builder` inserts them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from aotc.mlir import ir
from aotc.numbers import (
    Condition,
    Number,
    Scalar,
    Value,
    compare_values,
    wrap,
)
from aotc.ops import compare_floats, constant, create, element_type, select, with_element_type

# An `ir.Type`, or its text.
Type = Any

_FLOAT_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
_FAST_MATH_CONTRACT = "#arith.fastmath<contract>"
FLOAT8 = ("f8E4M3FN", "f8E5M2")


class Operations:
    """Operations at the insertion point, with the current location."""

    def __init__(self) -> None:
        self._parsed: dict[str, Any] = {}

    def type(self, type_: Type) -> Any:
        """The type of a text. A type is given back."""
        return self._parse(type_, ir.Type) if isinstance(type_, str) else type_

    def attribute(self, text: str) -> Any:
        """The attribute of a text."""
        return self._parse(text, ir.Attribute)

    def _parse(self, text: str, kind: Any) -> Any:
        found = self._parsed.get(text)
        if found is None:
            found = self._parsed[text] = kind.parse(text)
        return found

    # --- Operations --------------------------------------------------------------------------

    def op(
        self,
        name: str,
        operands: Sequence[Value] = (),
        result: Type | None = None,
        **attributes: Any,
    ) -> Value:
        """An operation with one result, which is returned, or with none. `attributes` are the
        bindings' attributes, or their text."""
        results = [] if result is None else [self.type(result)]
        given = self.attributes(attributes) if attributes else None
        made = create(name, operands, results, given)
        return None if result is None else wrap(made.result)

    def attributes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: self.attribute(one) if isinstance(one, str) else one
            for name, one in given.items()
        }

    def value(self, number: Number, type_: Type = "index") -> Value:
        """A number as a value: a constant, where it is an int."""
        return self.constant(number, type_) if isinstance(number, int) else number

    def values(self, numbers: Sequence[Number]) -> list[Value]:
        return [self.value(number) for number in numbers]

    def constant(self, number: float, type_: Type = "index") -> Value:
        """An `arith.constant`; for a vector type, with the same number in each element. Constants
        are never shared between regions: each call makes one."""
        return wrap(constant(self.type(type_), number))

    def zero(self, type_: Type) -> Value:
        return self.constant(0, type_)

    # --- Numbers of other types ----------------------------------------------------------------

    def index(self, value: Number) -> Number:
        """An unsigned integer as an index."""
        if isinstance(value, int) or isinstance(value.type, ir.IndexType):
            return value
        return Scalar(self._cast("arith.index_castui", value, "index"))

    def i32(self, value: Number) -> Number:
        """An index as an unsigned integer of 32 bits. An int stays one."""
        return (
            value
            if isinstance(value, int)
            else Scalar(self._cast("arith.index_castui", value, "i32"))
        )

    def _cast(self, name: str, value: Value, type_: Type) -> Value:
        return wrap(create(name, [value], [self.type(type_)]).result)

    def signed_cast(self, value: Number, type_: Type) -> Scalar:
        """An index as a signed integer, or the other way round; an int is an index."""
        return Scalar(self._cast("arith.index_cast", self.value(value), type_))

    def convert(self, value: Value, type_: Type, *, unsigned: bool = False) -> Value:
        """A value, or a vector, as another type: floats rounded to nearest even, integers
        sign-extended, or zero-extended if `unsigned`, or wrapped. Between f16 and bf16, through
        f32."""
        source, target = value.type, self.type(type_)
        if source == target:
            return value
        if str(element_type(source)) in FLOAT8:
            return self.widen_float8(value, target)
        before, after = bytes_of(element_type(source)), bytes_of(element_type(target))
        is_integer = isinstance(element_type(source), ir.IntegerType)
        if before == after and not is_integer:
            return self.convert(self.convert(value, _of_elements(source, "f32")), target)
        if is_integer:
            widen = "arith.extui" if unsigned else "arith.extsi"
            return self._cast(widen if after > before else "arith.trunci", value, target)
        return self._cast("arith.extf" if after > before else "arith.truncf", value, target)

    def widen_float8(self, value: Value, type_: Type) -> Value:
        """An f8, or a vector of such, as a wider float, exactly, by arithmetic on bits.

        f8E5M2 is the upper half of an f16. f8E4M3FN's bits behind its sign are those of an f16,
        whose exponent has another bias; but for its NaN, which has them all.
        """
        target = self.type(type_)
        i16, f16, f32 = (_of_elements(value.type, one) for one in ("i16", "f16", "f32"))
        i8 = self._cast("arith.bitcast", value, _of_elements(value.type, "i8"))
        bits = self._cast("arith.extui", i8, i16)
        eight = self.constant(8, i16)
        if str(element_type(value.type)) == "f8E5M2":
            half = self._cast("arith.bitcast", self.op("arith.shli", [bits, eight], i16), f16)
            return self.convert(half, target)
        all_ones = self.constant(0x7F, i16)
        magnitude = self.op("arith.andi", [bits, all_ones], i16)
        sign = self.op("arith.subi", [bits, magnitude], i16)
        sign = self.op("arith.shli", [sign, eight], i16)
        moved = self.op("arith.shli", [magnitude, self.constant(7, i16)], i16)
        half = self._cast("arith.bitcast", self.op("arith.ori", [sign, moved], i16), f16)
        scale = self.constant(256.0, f32)
        scaled = self.op("arith.mulf", [self._cast("arith.extf", half, f32), scale], f32)
        is_nan = compare_values("eq", magnitude, all_ones)
        return self.convert(self.select(is_nan, self.constant(math.nan, f32), scaled), target)

    # --- Sums and products ---------------------------------------------------------------------

    def multiply_add(self, x: Value, y: Value, sum_: Value) -> Value:
        """x * y + sum_, of numbers or vectors. Of floats, the two may become one operation, which
        is rounded once."""
        return self.add(self.multiply(x, y), sum_)

    def multiply(self, x: Value, y: Value) -> Value:
        return self._arithmetic("mul", x, y)

    def add(self, x: Value, y: Value) -> Value:
        """x + y, which may become one operation with a product that it adds."""
        return self._arithmetic("add", x, y)

    def subtract(self, x: Value, y: Value) -> Value:
        return self._arithmetic("sub", x, y)

    def _arithmetic(self, name: str, x: Value, y: Value) -> Value:
        type_ = x.type
        if isinstance(element_type(type_), ir.IntegerType):
            return wrap(create(f"arith.{name}i", [x, y], [type_]).result)
        flags = {"fastmath": self.attribute(_FAST_MATH_CONTRACT)}
        return create(f"arith.{name}f", [x, y], [type_], flags).result

    def compare_floats(self, predicate: str, x: Value, y: Value) -> Any:
        """`arith.cmpf` of scalars, or of vectors. `predicate`: as MLIR has it (oeq, olt, uno)."""
        return wrap(compare_floats(_FLOAT_PREDICATES.index(predicate), x, y))

    def select(self, condition: Condition, yes: Value, no: Value) -> Value:
        """One of two values of any one type."""
        if isinstance(condition, bool):
            return yes if condition else no
        return wrap(select(condition, yes, no))


def _of_elements(type_: Any, element: str) -> Any:
    """A type like another one, with elements of another type."""
    return with_element_type(type_, ir.Type.parse(element))


def bytes_of(type_: Any) -> int:
    """The bytes of an element of a type; an index is as large as the host's."""
    if isinstance(type_, ir.VectorType):
        return int(math.prod(type_.shape)) * bytes_of(type_.element_type)
    return int(type_.width) // 8 if hasattr(type_, "width") else 8
