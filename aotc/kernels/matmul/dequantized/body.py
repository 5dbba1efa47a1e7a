"""The elements of W that 16 packed bytes of a row have, computed in vectors as a body says.

Operations of 16 bits are done for two elements at once. The bytes of a word are taken in the order
0, 2, 1, 3: so the halves of a word that a shift and a mask leave are two elements. An unsigned
integer of at most 10 bits becomes f16 as the lowest bits of 1024, from which 1024 is subtracted.
Floats of 8 bits are widened as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aotc.builder import Builder
from aotc.kernels.matmul.dequantized.integers import (
    Field,
    Known,
    float_field,
    int_of,
    integer_result,
)
from aotc.kernels.matmul.dequantized.recognition import CHUNK, Product, factor_of
from aotc.mlir import ir
from aotc.numbers import Value
from aotc.ops import create, defining

WORD = 4
ORDER = tuple(word + byte for word in range(0, CHUNK, WORD) for byte in (0, 2, 1, 3))
_HALF_BITS = 10  # of an f16's mantissa
_EXPONENT = 0x6400  # the bits of 1024


def weights(
    b: Builder,
    product: Product,
    words: Sequence[Value],
    others: Mapping[int, Value],
    inner: Mapping[int, int],
    bits: Mapping[int, Value],
    *,
    narrow: bool = False,
) -> Value:
    """A vector of one of the weights of each byte, in `ORDER`. `words`: the 16 bytes. `others`:
    what all bytes have in common, by the numbers of the inputs. `inner`: the values of the digits
    of a byte's weights. `bits`: what `exponent_bits` made. `narrow`: before they are widened to the
    type of the sums."""
    return _Body(b, product, words, others, inner, bits).weights(narrow=narrow)


def exponent_bits(b: Builder) -> dict[int, Value]:
    """The bits that make an f16 of the bits of a byte, by number, for both halves of a word. LLVM
    and ptxas do not see what they are, as lanes exchange them: of two constants, ptxas would make
    two instructions of the mask and of these bits, where one can do both."""
    return {
        bits: b.shuffle_xor(b.constant(bits | bits << 16, "i32"), 1)
        for bits in (_EXPONENT, _EXPONENT | Field(0, 0, is_signed=True).bias)
    }


class _Body:
    def __init__(
        self,
        b: Builder,
        product: Product,
        words: Sequence[Value],
        others: Mapping[int, Value],
        inner: Mapping[int, int],
        bits: Mapping[int, Value],
    ) -> None:
        self.b, self.product, self.words, self.inner = b, product, words, inner
        self.bits = bits
        arguments = list(product.operation.regions[0].blocks[0].arguments)
        self.values: dict[Any, Any] = {}
        for number, value in others.items():
            vector = ir.VectorType.get([CHUNK], value.type)
            self.values[arguments[number]] = b.op("vector.broadcast", [value], vector)
        packed = arguments[product.packed]
        is_integer = isinstance(packed.type, ir.IntegerType)
        self.values[packed] = Field.of_byte() if is_integer else self._floats(packed.type)

    def weights(self, *, narrow: bool) -> Value:
        factor = factor_of(self.product, narrow=narrow)
        return self._vector(self._value(factor), factor.type)

    def _floats(self, element: Any) -> Value:
        """The bytes as floats of 8 bits, which the target widens: by instructions from sm_89 on."""
        b, bytes_ = self.b, f"vector<{CHUNK}xi8>"
        words = b.from_elements(list(self.words), f"vector<{CHUNK // WORD}xi32>")
        as_stored = b.op("vector.bitcast", [words], bytes_)
        order = ir.DenseI64ArrayAttr.get(ORDER)
        ordered = b.op("vector.shuffle", [as_stored, as_stored], bytes_, mask=order)
        return b.op("arith.bitcast", [ordered], ir.VectorType.get([CHUNK], element))

    def _value(self, value: Any) -> Any:
        """A vector, or what is known of an integer; None for a constant of another kind."""
        if value not in self.values:
            operation = defining(value)
            is_constant = operation is None or operation.name == "arith.constant"
            self.values[value] = int_of(value) if is_constant else self._operation(operation)
        return self.values[value]

    def _operation(self, operation: Any) -> Any:
        if operation.name == "linalg.index":
            loop = ir.IntegerAttr(operation.attributes["dim"]).value
            return Known(self.inner[loop])
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
        attributes = {name: operation.attributes[name] for name in operation.attributes}
        return create(operation.name, operands, [result], attributes).result

    def _vector(self, value: Any, type_: Any) -> Value:
        b = self.b
        vector = ir.VectorType.get([CHUNK], type_)
        if isinstance(value, Known):
            return b.constant(value.number, vector)
        if not isinstance(value, Field):
            return value
        # The elements as they are, in the order of the words.
        halves = b.op("vector.bitcast", [self._halves(value, 0)], f"vector<{CHUNK}xi16>")
        if value.is_signed:
            bias = b.constant(value.bias, f"vector<{CHUNK}xi16>")
            halves = b.op("arith.subi", [halves, bias], f"vector<{CHUNK}xi16>")
        if type_.width == 16:
            return halves
        extends = "arith.extsi" if value.is_signed else "arith.extui"
        name = extends if type_.width > 16 else "arith.trunci"
        return b.op(name, [halves], vector)

    def _constant(self, value: Any) -> Value:
        constant: Any = defining(value)
        attribute = constant.attributes["value"]
        vector = ir.VectorType.get([CHUNK], value.type)
        splat = ir.DenseElementsAttr.get_splat(vector, attribute)
        return create("arith.constant", [], [vector], {"value": splat}).result

    def _float(self, field: Field, operation: Any) -> Value:
        """A field as a float: exactly, as f16 has 11 bits. The bits of a byte stay where they are
        in it: a multiplication by a power of two moves them, with the subtraction."""
        b, f16 = self.b, f"vector<{CHUNK}xf16>"
        shift = field.shift
        in_place = Field(0, field.mask << shift, field.is_signed)
        magic = 1 << _HALF_BITS
        half = b.op("vector.bitcast", [self._halves(in_place, _EXPONENT)], f16)
        if shift:
            half = b.multiply(half, b.constant(2.0**-shift, f16))
        numbers = b.add(half, b.constant(-(magic >> shift) - field.bias, f16))
        target = operation.results[0].type
        return b.convert(numbers, ir.VectorType.get([CHUNK], target))

    def _halves(self, field: Field, above: int) -> Value:
        """The field's bits of each byte, plus its bias, in halves of words, with the bits `above`
        set."""
        b, found = self.b, []
        mask = b.constant(field.mask | field.mask << 16, "i32")
        # The bits of the field and those above it are others.
        flipped = field.bias | above
        flips = self.bits.get(flipped)
        if flips is None:
            flips = b.constant(flipped | flipped << 16, "i32")
        for word in self.words:
            for shift in (field.shift, field.shift + 8):
                moved = word
                if shift:
                    moved = b.op("arith.shrui", [word, b.constant(shift, "i32")], "i32")
                kept = b.op("arith.andi", [moved, mask], "i32")
                found.append(b.op("arith.xori", [kept, flips], "i32") if flipped else kept)
        return b.from_elements(found, f"vector<{CHUNK // 2}xi32>")
