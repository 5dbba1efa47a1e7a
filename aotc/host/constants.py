"""Large constants of the host module → an object of their own, without passing through text.

LLVM IR text of a gigabyte of numbers is three of them, and takes minutes to read. So a variable
with a large initial value becomes a declaration before the module is translated, and its bytes
go into an object file that is written here. Both are one object again before anybody sees them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aotc.errors import InputError, InternalError
from aotc.host.elf_writer import Variable, write_object
from aotc.host.llvm_dialect import operations
from aotc.input.blobs import resource_name
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.sizes import dense_bytes

# Smaller ones are as quick as text, and there the optimizer sees them.
LARGE = 1 << 16
# Code addresses variables by their distance, in 32 bits with a sign; the rest is for the code.
_REACH = 2**31 - 2**27
_CACHE_LINE = 64
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Constant:
    """A variable with an initial value: its symbol, bytes in pieces, and their number."""

    symbol: str
    size: int
    alignment: int
    is_constant: bool
    attribute: Any

    @property
    def is_zero(self) -> bool:
        return _is_splat(self.attribute) and not any(_element_of(self.attribute) or b"")

    def pieces(self) -> Iterator[bytes | memoryview]:
        """The bytes, a part at a time."""
        if _is_splat(self.attribute):
            element = _element_of(self.attribute)
            assert element is not None
            piece = element * (_CHUNK // len(element))
            for start in range(0, self.size, len(piece)):
                yield piece[: self.size - start]
        else:
            yield _content(self.attribute, self.size)


def take_large_constants(host: Any) -> list[Constant]:
    """Makes declarations of the variables of `host` with large initial values; these, in order."""
    taken = []
    with host.context:
        for variable in operations(host):
            constant = _constant_of(variable)
            if constant is not None:
                _declare(variable)
                taken.append(constant)
    check_reach(taken)
    return taken


def check_reach(constants: Sequence[Constant]) -> None:
    """Raises InternalError for more constants than code addresses in one program."""
    size = sum(constant.size for constant in constants)
    if size > _REACH:
        raise InternalError(
            f"The constants {describe(constants)} have {size >> 20} MiB together; the code of one "
            f"program or library reaches {_REACH >> 20} MiB.",
            hint="Pass the largest as arguments, or build several modules.",
        )


def write_constants(constants: Sequence[Constant], machine: str, place: Path) -> None:
    """Writes the object that defines `constants` for hosts of an architecture."""
    with place.open("wb") as out:
        write_object(
            out,
            machine,
            [
                Variable(c.symbol, c.size, c.alignment, not c.is_constant, c.is_zero, c.pieces)
                for c in constants
            ],
        )


def describe(constants: Sequence[Constant]) -> str:
    """The names, for messages: the first ones of many."""
    shown = ", ".join(constant.symbol for constant in constants[:3])
    return shown + (f" and {len(constants) - 3} more" if len(constants) > 3 else "")


def _constant_of(variable: Any) -> Constant | None:
    if variable.name != "llvm.mlir.global" or "value" not in variable.attributes:
        return None
    try:
        value = variable.attributes["value"]
    except TypeError:
        return None  # complex numbers: the bindings have no class for their attribute
    if not isinstance(value, ir.DenseElementsAttr) and resource_name(value) is None:
        return None
    size = dense_bytes(ir.ShapedType(value.type))
    if size is None or size < LARGE:
        return None
    if _is_splat(value) and _element_of(value) is None:
        return None
    alignment = _CACHE_LINE
    if "alignment" in variable.attributes:
        alignment = max(alignment, int(ir.IntegerAttr(variable.attributes["alignment"]).value))
    return Constant(symbol_of(variable), size, alignment, "constant" in variable.attributes, value)


def _declare(variable: Any) -> None:
    del variable.attributes["value"]
    variable.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
    # One object in the end: its code need not go through a table of addresses.
    i64 = ir.IntegerType.get_signless(64)
    variable.attributes["visibility_"] = ir.IntegerAttr.get(i64, 1)  # hidden


def _is_splat(attribute: Any) -> bool:
    return isinstance(attribute, ir.DenseElementsAttr) and bool(attribute.is_splat)


def _element_of(splat: Any) -> bytes | None:
    """The bytes of one element; None for the types to which the bindings give no access."""
    with ir.Location.unknown(splat.context):
        one = ir.RankedTensorType.get([1], ir.ShapedType(splat.type).element_type)
    try:
        return memoryview(ir.DenseElementsAttr.get_splat(one, splat.get_splat_value())).tobytes()
    except (BufferError, TypeError):
        return None


def _content(attribute: Any, size: int) -> bytes | memoryview:
    """The elements, `size` bytes together. Raises InputError when it has another number."""
    try:
        content: bytes | memoryview = memoryview(attribute).cast("B")
    except (BufferError, TypeError):
        # Of some types, and of resources, bytecode alone has the bytes: in one piece.
        pieces = _Pieces()
        with attribute.context, ir.Location.unknown():
            module = ir.Module.create()
        module.operation.attributes["aotc.constant"] = attribute
        module.operation.write_bytecode(pieces)
        content = pieces.largest
    if len(content) != size:
        raise InputError(
            f"A constant of type {ir.ShapedType(attribute.type)} has {len(content)} bytes of data; "
            f"expected {size}."
        )
    return content


class _Pieces:
    """A file that keeps the largest of what is written to it."""

    def __init__(self) -> None:
        self.largest = b""

    def write(self, piece: bytes) -> int:
        if len(piece) > len(self.largest):
            self.largest = piece
        return len(piece)
