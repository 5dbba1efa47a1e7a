"""Large constants in MLIR text → memory outside the module, which the parser does not read.

A constant of a gigabyte is two gigabytes of hexadecimal digits, of which the parser makes two
copies. Here the bytes go to an unnamed file, which is mapped into memory. In the text that is
parsed, a `dense_resource` without data stands in their place. The operations of the parsed module
then get a resource with the bytes.
"""

from __future__ import annotations

import binascii
import mmap
import re
import tempfile
from typing import Any

from aotc import ops
from aotc.mlir import ir
from aotc.sizes import dense_bytes

# In digits. For a shorter constant, nothing is saved.
_LARGE = 2 << 20
_CHUNK = 16 << 20  # an even number of digits
_OPENING = b'"0x'
# A dialect resource begins with its alignment, a little-endian number of 32 bits.
_ALIGNMENT_DIGITS = 8
# The prefix of the names that constants without a name get, here and in front ends.
_UNNAMED = "aotc_"
_END_OF_NAME = "|"
_DENSE = re.compile(rb"\bdense<\s*$")
_KEY = re.compile(rb'(?:([\w$.-]+)|"([^"\\\n]+)")\s*:\s*$')
_HANDLE = re.compile(r'dense_resource<(?:"([^"]*)"|([^">]*))>')
# Bytes before a constant in which its context is searched.
_CONTEXT = 1000


class Blobs:
    """The large constants that were taken out of one text, by the name of their resource."""

    def __init__(self) -> None:
        self._taken: dict[str, mmap.mmap] = {}
        self.has_dense = False

    def __bool__(self) -> bool:
        return bool(self._taken)

    def take(self, data: bytes) -> bytes:
        """`data`, MLIR text, with short resources for its large constants.

        A constant that is not in the expected form (its digits are in a string, or their number is
        odd) is left.
        """
        parts, kept, at = [], 0, 0
        prefix = _unused_name(data)
        while (start := data.find(_OPENING, at)) >= 0:
            end = data.find(b'"', start + len(_OPENING))
            at = end + 1
            if end < 0:
                break
            if end - start < _LARGE:
                continue
            before = data[max(kept, start - _CONTEXT) : start]
            digits = start + len(_OPENING)
            if found := _DENSE.search(before):
                name = f"{prefix}{len(self._taken)}"
                closing = re.compile(rb"\s*>").match(data, at)
                if closing is None or not self._keep(name, data, digits, end):
                    continue
                self.has_dense = True
                parts += [data[kept : start - len(found[0])], f"dense_resource<{name}>".encode()]
                kept = at = closing.end()
            elif found := _KEY.search(before):
                name = (found[1] or found[2]).decode()
                digits += _ALIGNMENT_DIGITS
                if name in self._taken or not self._keep(name, data, digits, end):
                    continue
                parts.append(data[kept:digits])
                kept = end
        return b"".join([*parts, data[kept:]]) if parts else data

    def _keep(self, name: str, data: bytes, start: int, end: int) -> bool:
        """Keeps the bytes of the hexadecimal digits data[start:end]; False if they are not such
        digits."""
        if end <= start or (end - start) % 2 != 0:
            return False
        with tempfile.TemporaryFile() as file:
            for at in range(start, end, _CHUNK):
                try:
                    file.write(binascii.unhexlify(data[at : min(end, at + _CHUNK)]))
                except binascii.Error:
                    return False
            file.flush()
            self._taken[name] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return True

    def give_back(self, module: Any) -> bool:
        """Gives the operations of `module`, parsed from the result of `take`, their bytes.

        Returns False if a constant is used in an unknown way (its elements are not whole bytes, or
        its size is wrong). The module must not be used then.
        """
        missing = set(self._taken)
        made: dict[tuple[str, str], Any] = {}
        for operation in ops.walk(module.operation):
            for key in [_name_of(attribute) for attribute in operation.attributes]:
                try:
                    attribute = operation.attributes[key]
                except TypeError:
                    continue  # the bindings have no class for dense complex numbers
                name = resource_name(attribute)
                if name not in self._taken:
                    continue
                type_ = ir.ShapedType(attribute.type)
                if dense_bytes(type_) != len(self._taken[name]):
                    return False
                if (name, str(type_)) not in made:
                    is_named = name_of_weight(name) is not None
                    made[name, str(type_)] = ir.DenseResourceElementsAttr.get_from_buffer(
                        self._taken[name], named_resource(name) if is_named else name, type_
                    )
                operation.attributes[key] = made[name, str(type_)]
                missing.discard(name)
        return not missing


def _unused_name(data: bytes) -> str:
    name = "aotc_constant_"
    while name.encode() in data:
        name += "_"
    return name


def _name_of(attribute: Any) -> str:
    return attribute if isinstance(attribute, str) else str(attribute.name)


def named_resource(name: str) -> str:
    """The name of the resource of a named weight. MLIR appends a number to it if the context
    already has a resource of this name."""
    return f"{name}{_END_OF_NAME}"


def name_of_weight(resource: str) -> str | None:
    """The name of the weight whose resource this is: the name that `named_resource` was given, or
    that the input has; None for a constant without a name."""
    name, end, _ = resource.rpartition(_END_OF_NAME)
    if end:
        return name
    return None if resource.startswith(_UNNAMED) else resource


def resource_name(attribute: Any) -> str | None:
    """The name of a `dense_resource`; None for other attributes."""
    # The bindings have no class for a parsed resource. Its text has its name, and no data.
    if type(attribute) not in (ir.Attribute, ir.DenseResourceElementsAttr):
        return None
    found = _HANDLE.match(str(attribute))
    return (found[1] or found[2]) if found else None
