"""The contents of dense constants, as bytes."""

from __future__ import annotations

import re
from typing import Any

from aotc.attributes import CONSTANT_ATTRIBUTE
from aotc.errors import InputError
from aotc.mlir import ir

# Shorter chunks of bytecode may be names instead of elements.
_LONGEST_NAME = 1 << 12
_DIGITS = re.compile(r': "0x[0-9A-F]{8}([0-9A-F]*)"')


def is_splat(attribute: Any) -> bool:
    return isinstance(attribute, ir.DenseElementsAttr) and bool(attribute.is_splat)


def element_of(splat: Any) -> bytes | None:
    """The bytes of a splat's element; None for types that the bindings do not support."""
    with ir.Location.unknown(splat.context):
        one = ir.RankedTensorType.get([1], ir.ShapedType(splat.type).element_type)
    try:
        return memoryview(ir.DenseElementsAttr.get_splat(one, splat.get_splat_value())).tobytes()
    except (BufferError, TypeError):
        return None


def content_of(attribute: Any, size: int) -> bytes | memoryview:
    """The elements of a constant that is not a splat. Raises InputError if they are not `size`
    bytes."""
    if size == 0:  # There is no buffer without elements, and no chunk of bytecode.
        return b""
    try:
        content: bytes | memoryview = memoryview(attribute).cast("B")
    except (BufferError, TypeError):
        content = _written(attribute, size)
    if len(content) != size:
        raise InputError(
            f"A constant of type {ir.ShapedType(attribute.type)} has {len(content)} bytes of data; "
            f"expected {size}."
        )
    return content


def _written(attribute: Any, size: int) -> bytes:
    """The elements of a resource, or of a type that the bindings do not support, extracted from the
    text or bytecode that MLIR writes."""
    with attribute.context, ir.Location.unknown():
        module = ir.Module.create()
    module.operation.attributes[CONSTANT_ATTRIBUTE] = attribute
    if size <= _LONGEST_NAME and (digits := _DIGITS.search(module.operation.get_asm())):
        return bytes.fromhex(digits[1])
    # Bytecode is written in chunks, and the elements are one chunk.
    pieces = _Pieces()
    module.operation.write_bytecode(pieces)
    return pieces.largest


class _Pieces:
    """A file object that keeps only the largest chunk written to it."""

    def __init__(self) -> None:
        self.largest = b""

    def write(self, piece: bytes) -> int:
        if len(piece) > len(self.largest):
            self.largest = piece
        return len(piece)
