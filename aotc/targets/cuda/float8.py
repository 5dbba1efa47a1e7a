"""Conversions of f8E4M3FN and f8E5M2, by the instructions that GPUs have from sm_89 on, or by bits.

The module has both: `__nvvm_reflect` tells LLVM for which chip it compiles, and the other one is
dead code. (`ptx_levels` finds the instructions by their names, and has them compiled for sm_89.)

The instructions round to nearest even, as `arith.truncf` does, but saturate to the largest number.
So values that round to more, infinities and NaN get their bits here.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from aotc import llvm_ops, ops
from aotc.builder.numbers import compare_values
from aotc.mlir import ir

_FIRST_ARCH = 890  # of __CUDA_ARCH
_ARCH = "aotc_cuda_arch"
_REFLECT = "__nvvm_reflect"
_TEXTS = (
    f'llvm.mlir.global internal constant @{_ARCH}("__CUDA_ARCH\\00") {{addr_space = 0 : i32}}',
    f"llvm.func @{_REFLECT}(!llvm.ptr) -> i32",
)


class _Narrowing(Struct, frozen=True):
    """A conversion instruction, for the format of the same name: the largest f32 for which it is
    correct (`has_end`: inclusive), and the bits, without the sign, of larger values and of NaN."""

    name: str
    end: float
    has_end: bool
    overflow: int
    nan: int


# An end is halfway between the largest number and the one that would follow it. For f8E5M2, that
# one would have the even mantissa.
_NARROWINGS = {
    "f8E4M3FN": _Narrowing("e4m3x2", 464.0, True, 0x7F, 0x7F),
    "f8E5M2": _Narrowing("e5m2x2", 61440.0, False, 0x7C, 0x7E),
}
_PREDICATES = {"olt": 4, "ole": 5, "ord": 7}  # of arith.cmpf
# Only this format needs an instruction: f8E5M2 is the upper half of an f16.
_WIDENED = "f8E4M3FN"


class Float8Conversions:
    """The conversions that `expand_small_floats` uses in a device module."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._is_declared = False

    def widen(self, value: Any, by_bits: Any) -> Any:
        """A small float as a wider one. `by_bits` is the result of bit arithmetic, which is
        selected on chips without the instruction."""
        if ops.element_name(value.type) != _WIDENED:
            return by_bits
        halves = _joined(value, ir.F16Type.get(), _widen_pair)
        return self._choose(_convert(halves, by_bits.type), by_bits)

    def narrow(self, value: Any, by_bits: Any) -> Any:
        """An f32 rounded to nearest even. `by_bits` is the result of bit arithmetic, which is
        selected on chips without the instruction."""
        narrowing = _NARROWINGS.get(ops.element_name(by_bits.type))
        if narrowing is None:
            return by_bits
        i8 = ops.with_element_type(value.type, ops.integer(8))
        rounded = _joined(value, ops.integer(8), lambda *pair: _narrow_pair(narrowing.name, *pair))
        magnitude = ops.unary("math.absf", value, value.type)
        is_right = _compare("ole" if narrowing.has_end else "olt", magnitude, narrowing.end)
        is_number = _compare("ord", value, 0.0)
        special = ops.select(
            is_number, *(ops.constant(i8, b) for b in (narrowing.overflow, narrowing.nan))
        )
        bits = ops.unary("arith.bitcast", value, ops.with_element_type(value.type, ops.integer(32)))
        sign = ops.binary("arith.shrui", bits, ops.constant(bits.type, 24))
        sign = ops.unary("arith.trunci", sign, i8)
        sign = ops.binary("arith.andi", sign, ops.constant(i8, 0x80))
        chosen = ops.select(is_right, rounded, ops.binary("arith.ori", special, sign))
        return self._choose(ops.unary("arith.bitcast", chosen, by_bits.type), by_bits)

    def _choose(self, by_instruction: Any, by_bits: Any) -> Any:
        self._declare()
        i32 = ops.integer(32)
        arch = llvm_ops.call_llvm(_REFLECT, [llvm_ops.llvm_address(_ARCH)], [i32]).result
        has_it = compare_values("sge", arch, ops.constant(i32, _FIRST_ARCH))
        return ops.select(has_it, by_instruction, by_bits)

    def _declare(self) -> None:
        if self._is_declared:
            return
        self._is_declared = True
        (module,) = ops.find(self._device, "gpu.module")
        start = ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0])
        for text in _TEXTS:
            start.insert(ir.Operation.parse(text))


def _joined(value: Any, element: Any, convert_pair: Any) -> Any:
    """The elements of a value, converted in pairs to `element`."""
    type_ = ops.with_element_type(value.type, element)
    if not isinstance(value.type, ir.VectorType):
        return convert_pair(value, None)[0]
    count = 1
    for size in value.type.shape:
        count *= size
    row = ops.shape_cast(value, ir.VectorType.get([count], value.type.element_type))
    elements = [ops.extract(row, number) for number in range(count)]
    made: list[Any] = []
    for first in range(0, count, 2):
        pair = elements[first : first + 2]
        made += convert_pair(pair[0], pair[1] if len(pair) == 2 else None)[: len(pair)]
    flat = ir.VectorType.get([count], element)
    return ops.shape_cast(ops.create("vector.from_elements", made, [flat]).result, type_)


def _widen_pair(low: Any, high: Any | None) -> list[Any]:
    """Converts two f8E4M3FN to f16."""
    i16 = ops.integer(16)
    packed = _bits(low, i16)
    if high is not None:
        moved = ops.binary("arith.shli", _bits(high, i16), ops.constant(i16, 8))
        packed = ops.binary("arith.ori", packed, moved)
    both = llvm_ops.assembly("cvt.rn.f16x2.e4m3x2 $0, $1;", "=r,h", [packed], ops.integer(32))
    return [_half(both, place, 16, ir.F16Type.get()) for place in (0, 16)]


def _narrow_pair(name: str, low: Any, high: Any | None) -> list[Any]:
    """Converts two f32 to f8, as bits."""
    if high is None:
        f32 = ir.F32Type.get()
        zero = {"value": ir.FloatAttr.get(f32, 0.0)}
        high = ops.create("arith.constant", results=[f32], attributes=zero).result
    text = f"cvt.rn.satfinite.{name}.f32 $0, $1, $2;"
    both = llvm_ops.assembly(text, "=h,f,f", [high, low], ops.integer(16))
    return [_half(both, place, 8, ops.integer(8)) for place in (0, 8)]


def _half(both: Any, place: int, width: int, type_: Any) -> Any:
    moved = ops.binary("arith.shrui", both, ops.constant(both.type, place)) if place else both
    bits = ops.unary("arith.trunci", moved, ops.integer(width))
    return bits if bits.type == type_ else ops.unary("arith.bitcast", bits, type_)


def _bits(value: Any, type_: Any) -> Any:
    return ops.unary("arith.extui", ops.unary("arith.bitcast", value, ops.integer(8)), type_)


def _convert(value: Any, type_: Any) -> Any:
    """Converts f16 to another float. The conversion to bf16 is exact for values that were f8."""
    if value.type == type_:
        return value
    if ops.element_name(type_) == "bf16":
        wide = ops.with_element_type(type_, ir.F32Type.get())
        return ops.unary("arith.truncf", ops.unary("arith.extf", value, wide), type_)
    return ops.unary("arith.extf", value, type_)


def _compare(predicate: str, value: Any, number: float) -> Any:
    return ops.compare_floats(_PREDICATES[predicate], value, ops.constant(value.type, number))
