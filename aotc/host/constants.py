"""Large constants of the host module → a separate object, which is not made from text.

LLVM IR text of a gigabyte of numbers has three gigabytes, and takes minutes to parse. So a variable
with a large initial value becomes a declaration before the module is translated, and its bytes are
written to an object file here. The two objects are merged before the user sees them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.dense import content_of, element_of, is_splat
from aotc.host.elf_writer import Variable, write_object
from aotc.input.blobs import resource_name
from aotc.input.source import Source, input_error
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.rewrites.run import run_pipeline
from aotc.sizes import dense_bytes

# The optimizer sees the values of smaller constants, and clang takes 0.07 s to read a MiB of text.
LARGE = 1 << 12
# Text that users get has the values of smaller constants, and the object that is made from text
# defines smaller symbols that other objects can use.
TEXT_LIMIT = 1 << 16
# Code addresses variables by a signed 32-bit distance. The rest of the range is for the code.
_REACH = 2**31 - 2**27
_CACHE_LINE = 64
# Linkages of variables that one module defines, and that no definition of another one replaces.
_UNIQUE_LINKAGES = ("private", "internal", "external")
# The written object has sections of its own, and no groups of them.
_NOT_PLAIN = ("section", "comdat")
# Integer attributes that are 0 for variables of all threads, in the default address space.
_ZERO_IF_PLAIN = ("tls_mode", "addr_space")
_CHUNK = 1 << 20
# An array type as the LLVM dialect prints it: the sizes, each with its " x ", and the element.
_ARRAY = re.compile(r"!llvm\.array<((?:\d+ x (?:array<)?)+)(\w+)>+")


class Constant(Struct, frozen=True):
    """A variable with an initial value. `size` is the number of its bytes.

    `location` is the variable's in MLIR. `attribute` is None if it has no attribute as its value.
    """

    symbol: str
    size: int
    alignment: int
    is_constant: bool
    attribute: Any
    location: Any = None

    @property
    def is_zero(self) -> bool:
        return is_splat(self.attribute) and not any(element_of(self.attribute) or b"")

    def pieces(self) -> Iterator[bytes | memoryview]:
        """The bytes, in parts."""
        if is_splat(self.attribute):
            element = element_of(self.attribute)
            assert element is not None
            piece = element * (_CHUNK // len(element))
            for start in range(0, self.size, len(piece)):
                yield piece[: self.size - start]
        else:
            yield content_of(self.attribute, self.size)


_VISIBILITY = "sym_visibility"


def drop_unused_variables(host: Any) -> None:
    """Erases the private variables of `host` that nothing refers to. LLVM does so with those whose
    values it sees, and at -O0 with none."""
    with host.context:
        private = [
            op for op in ops.content(host) if op.name == "llvm.mlir.global" and is_private(op)
        ]
        if not private:
            return
        for variable in private:
            variable.attributes[_VISIBILITY] = ir.StringAttr.get("private")
        run_pipeline(host, ("symbol-dce",))
        for variable in ops.content(host):
            if variable.name == "llvm.mlir.global" and _VISIBILITY in variable.attributes:
                del variable.attributes[_VISIBILITY]


def take_large_constants(host: Any, least: int = LARGE) -> list[Constant]:
    """Makes declarations of the variables of `host` with initial values of at least `least` bytes;
    returns these, in order."""
    taken = []
    with host.context:
        for variable in ops.content(host):
            constant = constant_of(variable, least)
            if constant is not None and (is_private(variable) or constant.size >= TEXT_LIMIT):
                declare(variable)
                taken.append(constant)
    return taken


def large_variables(host: Any) -> list[Constant]:
    """The large variables that `host` defines without an attribute as their value, such as
    uninitialized ones."""
    return [
        Constant(symbol_of(variable), size, _CACHE_LINE, False, None, variable.location)
        for variable in ops.content(host)
        if variable.name == "llvm.mlir.global" and len(variable.regions[0].blocks) > 0
        if (size := _array_bytes(variable)) >= LARGE
    ]


def _array_bytes(variable: Any) -> int:
    """A lower bound of the bytes of a variable that is an array of numbers; 0 for any other."""
    found = _ARRAY.fullmatch(str(ir.TypeAttr(variable.attributes["global_type"]).value))
    if found is None:
        return 0
    count = math.prod(map(int, re.findall(r"\d+", found[1])))
    bits = re.search(r"\d+", found[2])
    return count * (1 if bits is None else max(1, int(bits[0]) // 8))


def check_reach(constants: Sequence[Constant], source: Source) -> None:
    """Raises InputError if the constants and variables are larger than what the code of one program
    can address."""
    size = sum(constant.size for constant in constants)
    if size <= _REACH:
        return
    ordered = sorted(constants, key=lambda constant: -constant.size)
    message = (
        f"The constants and variables {describe(ordered)} have {size >> 20} MiB together; the "
        f"code of one program or library reaches {_REACH >> 20} MiB."
    )
    raise input_error(
        source,
        [(ordered[0].location, message)],
        hint="Put them into a file (--weights FILE), or pass the largest as arguments.",
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
    """The names for a message; of more than three, only the first ones."""
    shown = ", ".join(constant.symbol for constant in constants[:3])
    return shown + (f" and {len(constants) - 3} more" if len(constants) > 3 else "")


def constant_of(variable: Any, least: int) -> Constant | None:
    """The variable with its initial value, if that is dense and has at least `least` bytes, and
    another object can define the variable."""
    if variable.name != "llvm.mlir.global" or "value" not in variable.attributes:
        return None
    if not _is_plain(variable):
        return None
    try:
        value = variable.attributes["value"]
    except TypeError:
        return None  # complex numbers: the bindings have no class for their attribute
    if not isinstance(value, ir.DenseElementsAttr) and resource_name(value) is None:
        return None
    size = dense_bytes(ir.ShapedType(value.type))
    if size is None or size < least:
        return None
    if is_splat(value) and element_of(value) is None:
        return None
    alignment = _CACHE_LINE
    if "alignment" in variable.attributes:
        alignment = max(alignment, int(ir.IntegerAttr(variable.attributes["alignment"]).value))
    return Constant(
        symbol_of(variable),
        size,
        alignment,
        "constant" in variable.attributes,
        value,
        variable.location,
    )


def is_private(variable: Any) -> bool:
    return _linkage(variable) in ("private", "internal")


def _is_plain(variable: Any) -> bool:
    attributes = variable.attributes
    if _linkage(variable) not in _UNIQUE_LINKAGES or any(one in attributes for one in _NOT_PLAIN):
        return False
    numbers = [ir.IntegerAttr(attributes[one]).value for one in _ZERO_IF_PLAIN if one in attributes]
    return not any(numbers)


def _linkage(variable: Any) -> str:
    return str(variable.attributes["linkage"]).removeprefix("#llvm.linkage<").removesuffix(">")


def declare(variable: Any) -> None:
    """Removes the variable's initial value: another object defines it."""
    del variable.attributes["value"]
    variable.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
    # Both become one object, so that the code need not use the global offset table.
    i64 = ir.IntegerType.get_signless(64)
    variable.attributes["visibility_"] = ir.IntegerAttr.get(i64, 1)  # hidden
