"""The elements of dense constants, as bytes."""

from __future__ import annotations

import re
from typing import Any

from aotc.errors import InputError
from aotc.mlir import ir

# Of bytecode, shorter pieces than these bytes may be names.
_LONGEST_NAME = 1 << 12
_DIGITS = re.compile(r': "0x[0-9A-F]{8}([0-9A-F]*)"')


def is_splat(attribute: Any) -> bool:
    return isinstance(attribute, ir.DenseElementsAttr) and bool(attribute.is_splat)


def element_of(splat: Any) -> bytes | None:
    """The bytes of one element; None for the types to which the bindings give no access."""
    with ir.Location.unknown(splat.context):
        one = ir.RankedTensorType.get([1], ir.ShapedType(splat.type).element_type)
    try:
        return memoryview(ir.DenseElementsAttr.get_splat(one, splat.get_splat_value())).tobytes()
    except (BufferError, TypeError):
        return None


def content_of(attribute: Any, size: int) -> bytes | memoryview:
    """The elements of what is no splat, `size` bytes together. Raises InputError when it has
    another number."""
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
    """The elements of a resource, or of a type of which the bindings show none: from what MLIR
    writes of it."""
    with attribute.context, ir.Location.unknown():
        module = ir.Module.create()
    module.operation.attributes["aotc.constant"] = attribute
    if size <= _LONGEST_NAME and (digits := _DIGITS.search(module.operation.get_asm())):
        return bytes.fromhex(digits[1])
    # In bytecode the elements are one piece.
    pieces = _Pieces()
    module.operation.write_bytecode(pieces)
    return pieces.largest


class _Pieces:
    """A file that keeps the largest of what is written to it."""

    def __init__(self) -> None:
        self.largest = b""

    def write(self, piece: bytes) -> int:
        if len(piece) > len(self.largest):
            self.largest = piece
        return len(piece)
