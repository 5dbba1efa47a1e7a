"""Sizes and alignments of types in memory, as LLVM's data layout for 64-bit hosts has them."""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec import Struct

from aotc.mlir import ir

_FLOATS = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "f80": 16, "f128": 16}
_TOKEN = re.compile(
    r"\s*(!llvm\.|struct|array|vector|packed|ptr(?:<\d+>)?|x|[a-z]+\d+|\d+|[<>(),])"
)
_WIDEST_ALIGNMENT = 64


class UnknownSizeError(Exception):
    """A type that has no place in memory here."""


class Size(Struct, frozen=True):
    """Bytes from one element of an array to the next, and the alignment, in bytes."""

    bytes: int
    alignment: int


def round_up(value: int, multiple: int) -> int:
    return (value + multiple - 1) // multiple * multiple


def size_of(type_: Any) -> Size:
    """The size of a value of an LLVM-compatible type, or of index. Raises UnknownSizeError."""
    if isinstance(type_, ir.IndexType):
        return Size(8, 8)
    if isinstance(type_, ir.ComplexType):
        element = size_of(type_.element_type)
        return Size(2 * element.bytes, element.alignment)
    if isinstance(type_, ir.VectorType):
        return _vector(type_)
    if isinstance(type_, ir.FloatType):
        return _whole(type_.width)
    return _Parser(str(type_)).parse()


def memref_bytes(type_: Any) -> int:
    """What a memref of static shape and contiguous layout occupies. Raises UnknownSizeError."""
    if not type_.has_static_shape:
        raise UnknownSizeError(str(type_))
    strides, offset = type_.get_strides_and_offset()
    last = offset + sum(
        (size - 1) * stride for size, stride in zip(type_.shape, strides, strict=True)
    )
    return 0 if 0 in list(type_.shape) else (last + 1) * size_of(type_.element_type).bytes


def _vector(type_: Any) -> Size:
    """A vector of more dimensions is an array of vectors."""
    element = type_.element_type
    if isinstance(element, ir.IndexType):
        bits = 64
    else:
        bits = element.width if isinstance(element, ir.FloatType) else _bits(str(element))
    *outer, inner = list(type_.shape) or [1]
    innermost = _whole(bits * inner)
    return Size(math.prod(outer) * innermost.bytes, innermost.alignment)


def _bits(name: str) -> int:
    if name in _FLOATS:
        return 80 if name == "f80" else 8 * _FLOATS[name]
    if name.startswith(("ptr", "!llvm.ptr")):
        return 64
    if re.fullmatch(r"[su]?i\d+", name):
        return int(name.lstrip("sui"))
    raise UnknownSizeError(name)


def _whole(bits: int) -> Size:
    size = 1
    while 8 * size < bits:
        size *= 2
    return Size(size, min(size, _WIDEST_ALIGNMENT))


class _Parser:
    """Reads the text of a type: the bindings have no LLVM struct and array to ask."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = []
        position = 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                raise UnknownSizeError(text)
            position = found.end()
            if found[1] != "!llvm.":
                self._tokens.append(found[1])
        self._tokens.reverse()

    def parse(self) -> Size:
        size = self._type()
        if self._tokens:
            raise UnknownSizeError(self._text)
        return size

    def _next(self) -> str:
        if not self._tokens:
            raise UnknownSizeError(self._text)
        return self._tokens.pop()

    def _take(self, *expected: str) -> None:
        for token in expected:
            if self._next() != token:
                raise UnknownSizeError(self._text)

    def _type(self) -> Size:
        name = self._next()
        if name == "struct":
            return self._struct()
        if name == "array":
            self._take("<")
            count = self._count()
            element = self._type()
            self._take(">")
            return Size(count * element.bytes, element.alignment)
        if name == "vector":
            self._take("<")
            count = self._count()
            bits = _bits(self._next())
            self._take(">")
            return _whole(bits * count)
        bits = _bits(name)
        return Size(16, 16) if bits == 80 else _whole(bits)

    def _count(self) -> int:
        count = self._next()
        if not count.isdigit():
            raise UnknownSizeError(self._text)
        # `4 x f32` in an array, `4xf32` in a vector.
        self._take("x")
        return int(count)

    def _struct(self) -> Size:
        self._take("<")
        token = self._next()
        is_packed = token == "packed"
        if is_packed:
            token = self._next()
        if token != "(":
            raise UnknownSizeError(self._text)
        end, alignment = 0, 1
        if self._tokens[-1:] == [")"]:
            self._take(")", ">")
            return Size(0, 1)
        while True:
            field = self._type()
            own = 1 if is_packed else field.alignment
            end = round_up(end, own) + field.bytes
            alignment = max(alignment, own)
            token = self._next()
            if token == ")":
                break
            if token != ",":
                raise UnknownSizeError(self._text)
        self._take(">")
        return Size(round_up(end, alignment), alignment)
