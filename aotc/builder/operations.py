"""Operations on values: constants, conversions and arithmetic, as `Builder` inserts them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from aotc.builder.numbers import (
    Condition,
    Number,
    Scalar,
    Value,
    compare_values,
    wrap,
)
from aotc.mlir import ir
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
        """Parses the text of a type. An `ir.Type` is returned as it is."""
        return self._parse(type_, ir.Type) if isinstance(type_, str) else type_

    def attribute(self, text: str) -> Any:
        """Parses the text of an attribute."""
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
        """Inserts an operation, and returns its result if it has one. `attributes` are the
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
        """A number as a value; an int becomes a constant."""
        return self.constant(number, type_) if isinstance(number, int) else number

    def values(self, numbers: Sequence[Number]) -> list[Value]:
        return [self.value(number) for number in numbers]

    def constant(self, number: float, type_: Type = "index") -> Value:
        """An `arith.constant`; a vector has the same number in each element. Each call makes a new
        constant, as constants must not be shared between regions."""
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
        """An index as an unsigned integer of 32 bits. An int is returned as it is."""
        return (
            value
            if isinstance(value, int)
            else Scalar(self._cast("arith.index_castui", value, "i32"))
        )

    def _cast(self, name: str, value: Value, type_: Type) -> Value:
        return wrap(create(name, [value], [self.type(type_)]).result)

    def signed_cast(self, value: Number, type_: Type) -> Scalar:
        """Casts an index to a signed integer type, or a signed integer to index. An int is taken as
        an index."""
        return Scalar(self._cast("arith.index_cast", self.value(value), type_))

    def convert(self, value: Value, type_: Type, *, unsigned: bool = False) -> Value:
        """Converts a value or a vector to another type. Floats are rounded to nearest even.
        Integers are sign-extended (zero-extended if `unsigned`) or truncated. A conversion between
        f16 and bf16 goes through f32."""
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
        """Converts an f8, or a vector of f8, to a wider float. The result is exact, and computed by
        arithmetic on bits.

        f8E5M2 is the upper half of an f16. The exponent and mantissa bits of f8E4M3FN are those of
        an f16 with another exponent bias, except for NaN, in which they are all set.
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
        """x * y + sum_, of numbers or vectors. For floats, the two operations may be contracted to
        an FMA, which rounds once."""
        return self.add(self.multiply(x, y), sum_)

    def multiply(self, x: Value, y: Value) -> Value:
        return self._arithmetic("mul", x, y)

    def add(self, x: Value, y: Value) -> Value:
        """x + y. It may be contracted to an FMA with a product that is one of its operands."""
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
        """`arith.cmpf` of scalars or vectors. `predicate` is MLIR's name of it (oeq, olt, uno)."""
        return wrap(compare_floats(_FLOAT_PREDICATES.index(predicate), x, y))

    def select(self, condition: Condition, yes: Value, no: Value) -> Value:
        """`yes` if the condition holds, else `no`. Both have the same type."""
        if isinstance(condition, bool):
            return yes if condition else no
        return wrap(select(condition, yes, no))


def _of_elements(type_: Any, element: str) -> Any:
    """The type with another element type."""
    return with_element_type(type_, ir.Type.parse(element))


def bytes_of(type_: Any) -> int:
    """Bytes of a value of a type, which may be a vector. An index has 8 bytes, as on the host."""
    if isinstance(type_, ir.VectorType):
        return int(math.prod(type_.shape)) * bytes_of(type_.element_type)
    return int(type_.width) // 8 if hasattr(type_, "width") else 8
