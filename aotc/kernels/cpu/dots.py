"""Dot-product instructions: they add the products of several consecutive elements along K to each
32-bit accumulator.

Integer results are exact. For bf16, the instruction rounds products and additions to nearest even,
in its own order, and treats denormal numbers as zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from aotc.builder import Builder
from aotc.builder.numbers import Value
from aotc.kernels.cpu.levels import AVX2, AVX512, BF16, VNNI
from aotc.kernels.cpu.vectors import Vectors
from aotc.mlir import ir

# Adds the products of two vectors to a vector of accumulators.
_Add = Callable[[Vectors, Value, Value, Value], Value]


class Instruction(Struct, frozen=True):
    """An instruction of a level of the CPU that adds products of `element`s. It adds those of
    `group` consecutive elements along K to an accumulator. `is_mixed`: the elements of the first
    operand are unsigned, those of the second signed."""

    level: int
    element: str
    group: int
    is_mixed: bool = False


class Dot(Instruction, frozen=True, kw_only=True):
    """A dot-product instruction. Its operands are vectors."""

    add: _Add


def call_intrinsic(b: Builder, name: str, operands: Sequence[Value], result: str | None) -> Value:
    """Calls the LLVM intrinsic `llvm.x86.NAME`."""
    sizes = ir.DenseI32ArrayAttr.get
    return b.op(
        "llvm.call_intrinsic",
        operands,
        result,
        intrin=ir.StringAttr.get(f"llvm.x86.{name}"),
        operandSegmentSizes=sizes([len(operands), 0]),
        op_bundle_sizes=sizes([]),
    )


def _add_bf16(v: Vectors, sums: Value, x: Value, y: Value) -> Value:
    return call_intrinsic(v.b, "avx512bf16.dpbf16ps.512", [sums, x, y], v.vector_type)


def _add_i8(v: Vectors, sums: Value, x: Value, y: Value) -> Value:
    """x is unsigned."""
    return call_intrinsic(v.b, "avx512.vpdpbusd.512", [sums, x, y], v.vector_type)


def _add_i16_at_once(v: Vectors, sums: Value, x: Value, y: Value) -> Value:
    return call_intrinsic(v.b, "avx512.vpdpwssd.512", [sums, x, y], v.vector_type)


def _add_i16(v: Vectors, sums: Value, x: Value, y: Value) -> Value:
    return v.b.add(sums, call_intrinsic(v.b, "avx512.pmaddw.d.512", [x, y], v.vector_type))


def _add_i16_halves(v: Vectors, sums: Value, x: Value, y: Value) -> Value:
    b, half = v.b, v.width // 2
    products = []
    for start in (0, 2 * half):
        parts = [_elements(b, one, range(start, start + 2 * half)) for one in (x, y)]
        products.append(call_intrinsic(b, "avx2.pmadd.wd", parts, v.of(v.type, half)))
    return b.add(sums, _elements(b, products[0], range(v.width), products[1]))


def _elements(
    b: Builder, vector: Value, places: Sequence[int], other: Value | None = None
) -> Value:
    """The elements `places` of a vector, or of the concatenation of two vectors."""
    type_ = ir.VectorType.get([len(places)], vector.type.element_type)
    mask = ir.DenseI64ArrayAttr.get(list(places))
    return b.op("vector.shuffle", [vector, other or vector], type_, mask=mask)


def interleaved(b: Builder, vectors: Sequence[Value]) -> Value:
    """Interleaves 2 or 4 vectors: their first elements, then their second ones, and so on."""
    count = vectors[0].type.shape[0]
    if len(vectors) == 4 and count % 4 == 0 and vectors[0].type.element_type.width == 8:
        return _interleaved_bytes(b, vectors)
    if len(vectors) > 2:
        vectors = [interleaved(b, vectors[0::2]), interleaved(b, vectors[1::2])]
    places = [place + start for place in range(count) for start in (0, count)]
    return _elements(b, vectors[0], places, vectors[1])


def _interleaved_bytes(b: Builder, vectors: Sequence[Value]) -> Value:
    """Interleaves the bytes of 4 vectors. Words of 4 bytes of the vectors are brought side by side,
    and bytes are then permuted within 16 bytes, which takes fewer instructions than interleaving by
    halves."""
    count = vectors[0].type.shape[0]
    while len(vectors) > 1:
        size = vectors[0].type.shape[0]
        pairs = zip(vectors[0::2], vectors[1::2], strict=True)
        vectors = [_elements(b, one, range(2 * size), other) for one, other in pairs]
    words = b.op("vector.bitcast", [vectors[0]], ir.VectorType.get([count], b.type("i32")))
    order = [row * (count // 4) + word for word in range(count // 4) for row in range(4)]
    bytes_ = b.op("vector.bitcast", [_elements(b, words, order)], vectors[0].type)
    places = [
        start + row * 4 + column
        for start in range(0, 4 * count, 16)
        for column in range(4)
        for row in range(4)
    ]
    return _elements(b, bytes_, places)


_OF_BF16 = Dot(BF16, "bf16", 2, add=_add_bf16)
_OF_I8 = Dot(VNNI, "i8", 4, is_mixed=True, add=_add_i8)
_OF_I16 = (Dot(AVX512, "i16", 2, add=_add_i16), Dot(AVX2, "i16", 2, add=_add_i16_halves))
_OF_I16_AT_ONCE = Dot(VNNI, "i16", 2, add=_add_i16_at_once)


def dots_of(a: str, b: str, accumulator: str) -> tuple[Dot, ...]:
    """The instructions for operands of these types, the best one first. Empty if elements are
    computed in the accumulator type."""
    if (a, b, accumulator) == ("bf16", "bf16", "f32"):
        return (_OF_BF16,)
    if accumulator != "i32" or not {a, b} <= {"i8", "i16"}:
        return ()
    return (_OF_I16_AT_ONCE if "i16" in (a, b) else _OF_I8, *_OF_I16)
