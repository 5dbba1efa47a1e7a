"""Sizes and alignments of types in memory, by LLVM's data layout for 64-bit hosts."""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from aotc.mlir import ir, llvm

_WIDEST_ALIGNMENT = 64
# In bits. The bindings have no classes for these types.
_WIDE_FLOATS = {"f80": 80, "f128": 128}


class UnknownSizeError(Exception):
    """A type whose size in memory is not known."""


class Size(Struct, frozen=True):
    """The stride of an array's elements, and the alignment, in bytes."""

    bytes: int
    alignment: int


def round_up(value: int, multiple: int) -> int:
    return (value + multiple - 1) // multiple * multiple


def size_of(type_: Any) -> Size:
    """The size of a value of an LLVM-compatible type, or of index. Raises UnknownSizeError."""
    if isinstance(type_, ir.ComplexType):
        element = size_of(type_.element_type)
        return Size(2 * element.bytes, element.alignment)
    if isinstance(type_, ir.VectorType):
        # A vector of higher rank is an array of vectors.
        *outer, inner = list(type_.shape) or [1]
        innermost = _whole(_bits(type_.element_type) * inner)
        return Size(math.prod(outer) * innermost.bytes, innermost.alignment)
    if isinstance(type_, llvm.ArrayType):
        element = size_of(type_.element_type)
        return Size(type_.num_elements * element.bytes, element.alignment)
    if isinstance(type_, llvm.StructType) and not type_.opaque:
        return _struct(type_)
    return _whole(_bits(type_))


def memref_bytes(type_: Any) -> int:
    """The bytes that a memref of static shape spans. Raises UnknownSizeError."""
    if not type_.has_static_shape:
        raise UnknownSizeError(str(type_))
    strides, offset = type_.get_strides_and_offset()
    last = offset + sum(
        (size - 1) * stride for size, stride in zip(type_.shape, strides, strict=True)
    )
    return 0 if 0 in list(type_.shape) else (last + 1) * size_of(type_.element_type).bytes


def _struct(type_: Any) -> Size:
    end, alignment = 0, 1
    for field in map(size_of, type_.body):
        own = 1 if type_.packed else field.alignment
        end = round_up(end, own) + field.bytes
        alignment = max(alignment, own)
    return Size(round_up(end, alignment), alignment)


def _bits(type_: Any) -> int:
    if isinstance(type_, (ir.IntegerType, ir.FloatType)):
        return int(type_.width)
    if isinstance(type_, (ir.IndexType, llvm.PointerType)):
        return 64
    if str(type_) in _WIDE_FLOATS:
        return _WIDE_FLOATS[str(type_)]
    raise UnknownSizeError(str(type_))


def _whole(bits: int) -> Size:
    size = 1
    while 8 * size < bits:
        size *= 2
    return Size(size, min(size, _WIDEST_ALIGNMENT))
