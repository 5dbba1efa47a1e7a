"""Computes the elements of W that 16 packed bytes of a row hold, in vectors, from an operation's
body.

Operations of 16 bits are applied to two elements at once. The bytes of a word are taken in the
order 0, 2, 1, 3, so that the halves of a word after a shift and a mask are two elements. An
unsigned integer of at most 10 bits is converted to f16 by placing it in the lowest bits of 1024,
and subtracting 1024; one of at most 7 bits is converted to bf16 likewise with 128. If the body then
subtracts a zero point, the two are subtracted as one sum, if that sum is exact (`Shifts`). Floats
of 8 bits are extended by the ordinary operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_, xor
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.builder import Builder
from aotc.builder.numbers import Condition, Value, compare
from aotc.kernels.matmul.dequantized.integers import (
    Field,
    Known,
    float_field,
    int_of,
    integer_result,
)
from aotc.kernels.matmul.dequantized.recognition import CHUNK, Product, factor_of
from aotc.mlir import ir
from aotc.ops import attributes_of, constant_from, create, defining

WORD = 4
ORDER = tuple(word + byte for word in range(0, CHUNK, WORD) for byte in (0, 2, 1, 3))
_MANTISSAS = {"f16": 10, "bf16": 7}  # in bits
_LARGEST_LAST_BIT = 32  # of the numbers of f16
_EXPONENTS = {"f16": 0x6400, "bf16": 0x4300}  # the bits of 1024, and of 128


class Shifts(Struct, frozen=True):
    """The sums that are subtracted from fields as floats: the zero point in the body plus the
    excess of the field's bits over its number as a float. `are_exact`: whether no sum is rounded,
    so that one subtraction gives the same bits as two. It is False if there are no sums."""

    are_exact: Condition
    sums: dict[tuple[Value, Field], Value]


def shifts(
    b: Builder,
    product: Product,
    elements: Sequence[tuple[Mapping[int, Value], Mapping[int, int]]],
    *,
    few_instructions: bool = False,
) -> Shifts:
    """The `Shifts` of some elements, each given by the arguments `others` and `inner` of `weights`.
    `few_instructions`: prefer fewer instructions to fewer registers."""
    zeros: dict[tuple[str, Field], list[Value]] = {}
    for others, inner in elements:
        for zero, field in _Body(b, product, (), others, inner).subtractions():
            same = zeros.setdefault((str(zero.type), field), [])
            if zero not in same:
                same.append(zero)
    # A sum is exact if subtracting each summand gives the other one. (If it is rounded, the
    # difference to the larger summand is exact, and the other one is not.) No fast-math flag allows
    # a target to remove these operations.
    rounded: list[Value] = []
    are_exact: list[Condition] = []
    sums = {}
    for (element, field), group in zeros.items():
        # Padded to an even number.
        all_ = b.from_elements([*group, *group[: len(group) % 2]], _vector_of(group, element))
        excess = b.constant(_excess(field, element), all_.type)
        sum_ = b.op("arith.addf", [excess, all_], all_.type)
        if not (few_instructions and _is_implied(field, element, group, zeros)):
            for one, other in ((excess, all_), (all_, excess)):
                rest = b.op("arith.subf", [sum_, one], all_.type)
                if few_instructions:
                    rounded += map(xor, _words(b, rest), _words(b, other))
                else:
                    are_exact += b.elements(b.compare_floats("oeq", rest, other))
        for zero, total in zip(group, b.elements(sum_)[: len(group)], strict=True):
            sums[zero, field] = total
    if rounded:
        are_exact.append(compare("eq", reduce(or_, rounded), 0))
    return Shifts(reduce(and_, are_exact) if are_exact else False, sums)


def _vector_of(group: Sequence[Value], element: str) -> str:
    return f"vector<{len(group) + len(group) % 2}x{element}>"


def _words(b: Builder, halves: Value) -> list[Value]:
    words = f"vector<{halves.type.shape[0] // 2}xi32>"
    return b.elements(b.op("vector.bitcast", [halves], words))


def _is_implied(
    field: Field,
    element: str,
    group: Sequence[Value],
    zeros: Mapping[tuple[str, Field], Sequence[Value]],
) -> bool:
    """Whether these sums are exact if those of the same zero points and a larger excess are."""
    if element != "f16":
        return False
    excesses = [
        _excess(other, of)
        for (of, other), numbers in zeros.items()
        if of == element and list(numbers) == list(group)
    ]
    return is_implied(_excess(field, element), max(excesses))


def is_implied(excess: int, larger: int) -> bool:
    """Whether the sum of an f16 and `excess` is exact if the sum with `larger` is. This holds for
    powers of two that are multiples of the last bit of any f16."""
    are_powers = excess & (excess - 1) == 0 and larger & (larger - 1) == 0
    return are_powers and _LARGEST_LAST_BIT <= excess < larger


def weights(
    b: Builder,
    product: Product,
    words: Sequence[Value],
    others: Mapping[int, Value],
    inner: Mapping[int, int],
    *,
    narrow: bool = False,
    sums: Mapping[tuple[Value, Field], Value] = MappingProxyType({}),
) -> Value:
    """A vector of one weight of each byte, in `ORDER`. `words`: the 16 bytes. `others`: the
    elements of the other inputs, which all bytes share, by the indices of the inputs. `inner`: the
    values of the digits that select the weight in a byte. `narrow`: before the weights are extended
    to the accumulator type. `sums`: the sums of `Shifts`, if they are exact."""
    return _Body(b, product, words, others, inner, sums).weights(narrow=narrow)


def weights_of_bytes(
    b: Builder,
    product: Product,
    bytes_: Value,
    others: Mapping[int, Value],
    inner: Mapping[int, int],
) -> Value:
    """A vector of one weight of each byte of a vector of packed elements. `others`, `inner`: see
    `weights`."""
    body = _Body(b, product, (), others, inner)
    body.values[body.packed] = bytes_
    return body.weights(narrow=False)


def field_of(product: Product, inner: Mapping[int, int]) -> Field | None:
    """The bits of a byte that one of its weights is computed from; None if they are not known to be
    a field. (`Field.is_signed` and `less` of the result have no meaning.)"""
    known: dict[Any, Any] = {}
    arguments = product.operation.regions[0].blocks[0].arguments
    if not isinstance(arguments[product.packed].type, ir.IntegerType):
        return None
    known[arguments[product.packed]] = Field.of_byte()
    found: dict[tuple[int, int], Field] = {}
    for operation in ops.content(product.operation):
        given = [known.get(one) or int_of(one) for one in operation.operands]
        if operation.name == "linalg.index":
            result: Any = Known(inner[ir.IntegerAttr(operation.attributes["dim"]).value])
        else:
            result = integer_result(operation, given)
        if result is None:
            fields = [one for one in given if isinstance(one, Field)]
            found.update({(one.shift, one.mask): one for one in fields})
        else:
            known[operation.results[0]] = result
    return next(iter(found.values())) if len(found) == 1 else None


def _excess(field: Field, element: str) -> int:
    """The excess of a field over its number, if its bits are the lowest bits of a float."""
    return (1 << _MANTISSAS[element] >> _place(field, element)) + field.bias + field.less


def _place(field: Field, element: str) -> int:
    """The position of the field's lowest bit in a float's mantissa. For bf16 it is 0, as its
    mantissa is too short for another position."""
    return field.shift if element == "f16" else 0


def _has_element(field: Field, element: str) -> bool:
    return element == "f16" or (element == "bf16" and not field.mask >> _MANTISSAS[element])


class _Body:
    def __init__(
        self,
        b: Builder,
        product: Product,
        words: Sequence[Value],
        others: Mapping[int, Value],
        inner: Mapping[int, int],
        sums: Mapping[tuple[Value, Field], Value] = MappingProxyType({}),
    ) -> None:
        self.b, self.product, self.words, self.inner = b, product, words, inner
        self.sums = sums
        arguments = list(product.operation.regions[0].blocks[0].arguments)
        self.scalars = {arguments[number]: value for number, value in others.items()}
        self.values: dict[Any, Any] = {}
        self.packed = arguments[product.packed]
        if isinstance(self.packed.type, ir.IntegerType):
            self.values[self.packed] = Field.of_byte()
        elif words:
            self.values[self.packed] = self._floats(self.packed.type)

    def subtractions(self) -> list[tuple[Value, Field]]:
        """The scalars that are subtracted from fields as floats, with the fields."""
        found = map(self._subtraction, ops.content(self.product.operation))
        return [one for one in found if one is not None]

    def _subtraction(self, operation: Any) -> tuple[Value, Field] | None:
        if operation.name != "arith.subf":
            return None
        number, zero = operation.operands
        converts, scalar = defining(number), self.scalars.get(zero)
        if converts is None or scalar is None or not converts.name.endswith("itofp"):
            return None
        field = float_field(converts, [self._integer(one) for one in converts.operands])
        if field is None or not _has_element(field, str(number.type)):
            return None
        return scalar, field

    def _integer(self, value: Any) -> Any:
        """The result of `integer_result` for an integer, or None. It creates no operation."""
        operation = defining(value)
        if value in self.values or operation is None or operation.name == "arith.constant":
            return self._value(value)
        if operation.name == "linalg.index":
            return self._operation(operation)
        return integer_result(operation, [self._integer(one) for one in operation.operands])

    def weights(self, *, narrow: bool) -> Value:
        factor = factor_of(self.product, narrow=narrow)
        return self._vector(self._value(factor), factor.type)

    def _floats(self, element: Any) -> Value:
        """The bytes as floats of 8 bits, which the target extends (by instructions from sm_89
        on)."""
        b, bytes_ = self.b, f"vector<{CHUNK}xi8>"
        words = b.from_elements(list(self.words), f"vector<{CHUNK // WORD}xi32>")
        as_stored = b.op("vector.bitcast", [words], bytes_)
        order = ir.DenseI64ArrayAttr.get(ORDER)
        ordered = b.op("vector.shuffle", [as_stored, as_stored], bytes_, mask=order)
        return b.op("arith.bitcast", [ordered], ir.VectorType.get([CHUNK], element))

    def _value(self, value: Any) -> Any:
        """A vector, or the known part of an integer (`Known`, `Field`); None for a constant of
        another kind."""
        if value in self.scalars and value not in self.values:
            scalar = self.scalars[value]
            vector = ir.VectorType.get([CHUNK], scalar.type)
            self.values[value] = self.b.op("vector.broadcast", [scalar], vector)
        if value not in self.values:
            operation = defining(value)
            is_constant = operation is None or operation.name == "arith.constant"
            self.values[value] = int_of(value) if is_constant else self._operation(operation)
        return self.values[value]

    def _operation(self, operation: Any) -> Any:
        if operation.name == "linalg.index":
            loop = ir.IntegerAttr(operation.attributes["dim"]).value
            return Known(self.inner[loop])
        subtracted = self._subtraction(operation) if self.sums else None
        if subtracted is not None:
            sum_ = self.sums[subtracted]
            vector = ir.VectorType.get([CHUNK], sum_.type)
            less = self.b.op("vector.broadcast", [sum_], vector)
            return self._without(subtracted[1], less)
        given = [self._value(one) for one in operation.operands]
        found = integer_result(operation, given)
        if found is not None:
            return found
        field = float_field(operation, given)
        if field is not None:
            return self._float(field, operation)
        operands = [
            self._vector(value, one.type) if value is not None else self._constant(one)
            for value, one in zip(given, operation.operands, strict=True)
        ]
        result = ir.VectorType.get([CHUNK], operation.results[0].type)
        attributes = attributes_of(operation)
        return create(operation.name, operands, [result], attributes).result

    def _vector(self, value: Any, type_: Any) -> Value:
        b = self.b
        vector = ir.VectorType.get([CHUNK], type_)
        if isinstance(value, Known):
            return b.constant(value.number, vector)
        if not isinstance(value, Field):
            return value
        # The integers themselves, in the order of the words.
        halves = b.op("vector.bitcast", [self._halves(value, 0)], f"vector<{CHUNK}xi16>")
        less = value.bias + value.less
        if less:
            halves = b.subtract(halves, b.constant(less, f"vector<{CHUNK}xi16>"))
        if type_.width == 16:
            return halves
        extends = "arith.extsi" if less else "arith.extui"
        name = extends if type_.width > 16 else "arith.trunci"
        return b.op(name, [halves], vector)

    def _constant(self, value: Any) -> Value:
        constant: Any = defining(value)
        attribute = constant.attributes["value"]
        vector = ir.VectorType.get([CHUNK], value.type)
        splat = ir.DenseElementsAttr.get_splat(vector, attribute)
        return constant_from(splat)

    def _float(self, field: Field, operation: Any) -> Value:
        """A field as a float. The conversion is exact, as the significand of f16 has 11 bits."""
        b, target = self.b, operation.results[0].type
        element = str(target) if _has_element(field, str(target)) else "f16"
        excess = b.constant(_excess(field, element), f"vector<{CHUNK}x{element}>")
        numbers = self._without(field, excess)
        return b.convert(numbers, ir.VectorType.get([CHUNK], target))

    def _without(self, field: Field, less: Value) -> Value:
        """The field as a float with its `_excess`, minus a vector. In an f16 the bits keep their
        position in the byte. A multiplication by a power of two corrects it, which is exact, and is
        one instruction together with the subtraction."""
        b, element = self.b, str(less.type.element_type)
        place, vector = _place(field, element), less.type
        in_place = Field(field.shift - place, field.mask << place, field.is_signed)
        numbers = b.op("vector.bitcast", [self._halves(in_place, _EXPONENTS[element])], vector)
        if place:
            return b.subtract(b.multiply(numbers, b.constant(2.0**-place, vector)), less)
        return b.op("arith.subf", [numbers, less], vector)

    def _halves(self, field: Field, above: int) -> Value:
        """The field's bits of each byte, plus its bias, in halves of words, with the bits `above`
        set."""
        b, found = self.b, []
        mask = b.constant(field.mask | field.mask << 16, "i32")
        # The bits of the field and those of `above` do not overlap.
        flipped = field.bias | above
        flips = b.constant(flipped | flipped << 16, "i32")
        for word in self.words:
            for shift in (field.shift, field.shift + 8):
                moved = word
                if shift:
                    moved = b.op("arith.shrui", [word, b.constant(shift, "i32")], "i32")
                kept = b.op("arith.andi", [moved, mask], "i32")
                found.append(b.op("arith.xori", [kept, flips], "i32") if flipped else kept)
        return b.from_elements(found, f"vector<{CHUNK // 2}xi32>")
