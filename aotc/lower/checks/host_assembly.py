"""Refuses host assembly that reads files when it is assembled, unless it is allowed.

LLVM's assembler reads files for `.incbin` and `.include`. `.macro` and `.irp` generate text from
arguments, and the compiler substitutes operands in an operation's text: both can form a directive
that is not in the text. So those are refused as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from aotc import ops
from aotc.input.source import Source, input_error
from aotc.mlir import ir

_READS = (b".incbin", b".include")
_MAKES_TEXT = (b".macro", b".irp", b".altmacro")
_DIRECTIVE = re.compile(b"|".join(map(re.escape, (*_READS, *_MAKES_TEXT))), re.IGNORECASE)
# A directive that is completed by an operand. (.L starts a local label, as in .Lloop${:uid}.)
_COMPLETED = re.compile(rb"\.(?!L)[A-Za-z]*\$[\d{]")
_OPERATION = "llvm.inline_asm"
_MODULE = "llvm.module_asm"
_HINT = "--allow-file-directives is for a module that you trust with every file that you can read."
# The limit of reported problems.
_MOST = 20


def check_host_assembly(source: Source, host: Any) -> None:
    """Raises InputError for assembly in `host`, in the LLVM dialect, that reads files."""
    inline = ops.find(host.operation, _OPERATION)
    found = [*_of_module(host), *_of_operations(inline)]
    if any(len(operation.operands) for operation in inline):
        found += _of_symbols(host)
    # Inlined operations appear several times.
    problems = {(str(location), message): location for location, message in found}
    if problems:
        first = [(location, message) for (_, message), location in problems.items()][:_MOST]
        raise input_error(source, first, hint=_HINT)


def _of_module(host: Any) -> Iterator[tuple[Any, str]]:
    attributes = host.operation.attributes
    if _MODULE in attributes:
        for line in ir.ArrayAttr(attributes[_MODULE]):
            for problem in _problems(ir.StringAttr(line).value_bytes):
                yield host.operation.location, problem


def _of_operations(inline: list[Any]) -> Iterator[tuple[Any, str]]:
    for operation in inline:
        text = ir.StringAttr(operation.attributes["asm_string"]).value_bytes
        for variant in _variants(text):
            for problem in _problems(variant):
                yield operation.location, problem


def _problems(text: bytes) -> Iterator[str]:
    for found in _DIRECTIVE.finditer(text):
        directive = found[0].decode().lower()
        if found[0].lower() in _READS:
            yield f"host assembly with '{directive}' reads a file when it is built"
        else:
            yield f"host assembly with '{directive}' makes text, which may read files"
    if completed := _COMPLETED.search(text):
        yield f"host assembly has an operand in a directive: '{completed[0].decode()}'"


def _variants(text: bytes) -> tuple[bytes, bytes]:
    """The text in AT&T syntax and in Intel syntax: `$(` one `$|` other `$)` contains both."""
    variants = bytearray(), bytearray()
    chosen: int | None = None
    for token in re.findall(rb"\$.|[^$]+", text, re.DOTALL):
        if token == b"$(":
            chosen = 0
        elif token == b"$|" and chosen is not None:
            chosen += 1
        elif token == b"$)":
            chosen = None
        else:
            for number, variant in enumerate(variants):
                if chosen in (None, number):
                    variant += token
    return bytes(variants[0]), bytes(variants[1])


def _of_symbols(host: Any) -> Iterator[tuple[Any, str]]:
    """Symbols that are, or start like, a directive, as an operand could put them in its place."""
    for operation in ops.body_of_module(host):
        if "sym_name" not in operation.attributes:
            continue
        # LLVM prints a name with a leading byte \x01 without that byte.
        name = ir.StringAttr(operation.attributes["sym_name"]).value_bytes.lstrip(b"\x01")
        if any(word.startswith(name.lower()) for word in (*_READS, *_MAKES_TEXT, b".irpc")):
            yield (
                operation.location,
                f"a symbol is called '{name.decode()}', which host assembly may take for a "
                "directive",
            )
