"""The part of a matrix product that one lane computes, from two matrices in a warp's memory.

Sums are in the order of k, starting with the accumulator (on a GPU, the order is not defined). f16,
bf16 and tf32 are multiplied exactly and accumulated in f32, which is rounded to an f16 accumulator
once, at the end. f64 uses FMA. Integers are accumulated in 32 bits with wrap-around; see
`add_saturating`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc.mlir import ir
from aotc.ops import (
    binary,
    constant,
    constant_from,
    constant_index,
    create,
    element_type,
    integer,
    unary,
    with_element_type,
)
from aotc.targets.cpu import build
from aotc.targets.cpu.expand.addresses import to_i64
from aotc.targets.cpu.expand.fragments import Place
from aotc.targets.cpu.sizes import size_of

# The bits of an f32 that tf32 has: sign, exponent and 10 bits of the fraction.
_TF32_BITS = 0xFFFFE000


class Multiplicand(Struct, frozen=True):
    """A row-major matrix at `address`, with elements of type `element`."""

    address: Any
    rows: int
    columns: int
    element: Any

    @property
    def element_bytes(self) -> int:
        return size_of(self.element).bytes

    @property
    def bytes(self) -> int:
        return self.rows * self.columns * self.element_bytes

    def offset(self, place: Place) -> int:
        """The offset of a row and a column from the first element, in bytes."""
        return (place[0] * self.columns + place[1]) * self.element_bytes


def place_multiplicands(
    address: Any, size: int, element: Any, m: int, n: int, k: int
) -> tuple[Multiplicand, Multiplicand]:
    """Places A (m x k) and B (k x n) one after the other in `size` bytes.

    Their elements are stored in the type that they are computed in, as far as they fit, so that
    each is converted once, and not by every lane that reads it. B is read more often than A.
    """
    wide = _stored_wide(element)
    for a_element, b_element in ((wide, wide), (element, wide), (element, element)):
        a = Multiplicand(address, m, k, a_element)
        b = Multiplicand(build.at(address, a.bytes), k, n, b_element)
        if a.bytes + b.bytes <= size:
            return a, b
    raise ValueError(f"m{m}n{n}k{k} of {element} does not fit into {size} bytes")


def _stored_wide(element: Any) -> Any:
    if isinstance(element, (ir.F16Type, ir.BF16Type)):
        return ir.F32Type.get()
    # Widening integers is cheap, but elements of 4 bits cannot be addressed.
    return integer(8) if str(element) == "i4" else element


def accumulator_type(element: Any) -> Any:
    """The accumulator type for products of this type."""
    if isinstance(element, ir.F64Type):
        return element
    return integer(32) if isinstance(element, ir.IntegerType) else ir.F32Type.get()


def convert(value: Any, element: Any, *, is_unsigned: bool = False) -> Any:
    """A number, or a vector, converted to another type of the same kind (integer or float)."""
    old = element_type(value.type)
    if old == element:
        return value
    grows = size_of(element).bytes > size_of(old).bytes or str(old) == "i4"
    if isinstance(element, ir.IntegerType):
        name = ("arith.extui" if is_unsigned else "arith.extsi") if grows else "arith.trunci"
    else:
        name = "arith.extf" if grows else "arith.truncf"
    return unary(name, value, with_element_type(value.type, element))


def prepare(value: Any, element: Any) -> Any:
    """Elements of a multiplicand in the form in which they are stored, of type `element`."""
    if isinstance(value.type.element_type, ir.F32Type):
        return _truncate_to_tf32(value)
    return convert(value, element)


def _truncate_to_tf32(value: Any) -> Any:
    """f32 values as a tensor core reads them: with the last 13 bits cleared."""
    bits_type = with_element_type(value.type, integer(32))
    bits = unary("arith.bitcast", value, bits_type)
    kept = binary("arith.andi", bits, constant(bits_type, _TF32_BITS))
    return unary("arith.bitcast", kept, value.type)


def multiply(
    a: Multiplicand,
    b: Multiplicand,
    a_rows: Sequence[Any],
    b_columns: Any,
    accumulators: Sequence[Any],
    *,
    is_unsigned: bool = False,
) -> list[Any]:
    """Adds rows of A times some columns of B to `accumulators`, one vector for each row.

    `a_rows` are the addresses of the rows. `b_columns` is the address of the first column. There
    are as many columns as a vector has elements, and the first one's number is a multiple of that.
    """
    vector = accumulators[0].type
    element = vector.element_type
    b_vector = ir.VectorType.get(list(vector.shape), b.element)
    b_alignment = vector.shape[0] * b.element_bytes

    def step(k: Any, accumulators: list[Any]) -> list[Any]:
        address = build.at(b_columns, build.multiply(k, build.number(b.offset((1, 0)))))
        right = convert(
            build.load(address, b_vector, alignment=b_alignment), element, is_unsigned=is_unsigned
        )
        place = build.multiply(k, build.number(a.offset((0, 1))))
        added = []
        for a_row, total in zip(a_rows, accumulators, strict=True):
            factor = build.load(build.at(a_row, place), a.element)
            factor = convert(factor, element, is_unsigned=is_unsigned)
            left = unary("vector.broadcast", factor, vector)
            added.append(_multiply_add(left, right, total))
        return added

    return _repeat(a.columns, step, accumulators)


def _multiply_add(left: Any, right: Any, total: Any) -> Any:
    element = element_type(total.type)
    if isinstance(element, ir.F64Type):
        return create("math.fma", [left, right, total], [total.type]).result
    if isinstance(element, ir.IntegerType):
        return binary("arith.addi", total, binary("arith.muli", left, right))
    return binary("arith.addf", total, binary("arith.mulf", left, right))


def _repeat(count: int, step: Any, values: Sequence[Any]) -> list[Any]:
    """A loop `values = step(i, values)` for i (an i64) from 0 to `count` (exclusive)."""
    bounds = [constant_index(number) for number in (0, count, 1)]
    types = [value.type for value in values]
    loop = create("scf.for", [*bounds, *values], types, regions=1)
    block = loop.regions[0].blocks.append(ir.IndexType.get(), *types)
    with ir.InsertionPoint(block):
        counter, *carried = block.arguments
        create("scf.yield", step(to_i64(counter), carried))
    return list(loop.results)


def zeros(type_: Any) -> Any:
    """A vector of zeros."""
    element = type_.element_type
    is_integer = isinstance(element, ir.IntegerType)
    zero = ir.IntegerAttr.get(element, 0) if is_integer else ir.FloatAttr.get(element, 0.0)
    attribute = ir.DenseElementsAttr.get_splat(type_, zero)
    return constant_from(attribute)


def add_saturating(left: Any, right: Any) -> Any:
    """The sum of two vectors of i32, saturated to i32."""
    wide = with_element_type(left.type, integer(64))
    total = binary(
        "arith.addi", unary("arith.extsi", left, wide), unary("arith.extsi", right, wide)
    )
    total = binary("arith.minsi", total, constant(wide, 2**31 - 1))
    total = binary("arith.maxsi", total, constant(wide, -(2**31)))
    return unary("arith.trunci", total, left.type)
