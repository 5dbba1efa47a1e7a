"""The nesting depth of a module: a check of the text before the parser, which is recursive.

It takes a few searches over all of the bytes, which are far faster than parsing.
"""

from __future__ import annotations

import re
from typing import Any

from aotc.errors import InputError
from aotc.input.place import Place

# The limit of nested brackets, and of nested operations. Programs have some tens of levels. The
# parser takes some thousands, aotc's own analyses as many as this.
MOST_LEVELS = 256
# The limit of aliases that refer to each other. A location in inlined code may have hundreds.
_MOST_ALIASES = 1000

_PAIRS = (b"()", b"[]", b"{}", b"<>")
_CLOSING = {pair[1]: pair[0] for pair in _PAIRS}
_OPENING = frozenset(_CLOSING.values())
_COMMENT, _QUOTE = b"\x01", b'"'
_KEPT = frozenset(b"()[]{}<>\n" + _COMMENT + _QUOTE)
_NOT_KEPT = bytes(byte for byte in range(256) if byte not in _KEPT)
_ALL_ALIKE = bytes.maketrans(b"[]{}<>", b"()()()")
# Tokens with brackets that do not nest, and escapes that hide the end of a string.
_NO_BRACKETS = (b"->", b">=", b"<=", b"\\\\", b'\\"')
_HIDDEN = re.compile(rb'"[^"\n]*"|' + _COMMENT + rb"[^\n]*")
_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>]=|[()\[\]{}<>]')
_ALIAS = re.compile(rb"\n([#!][\w$.-]+) *=([^\n]*)")
_USED_ALIAS = re.compile(rb"[#!][\w$.-]+")


def check_depth(name: str, data: bytes) -> None:
    """Raises InputError, with the place, for MLIR text that is nested too deep."""
    if sum(data.count(pair[:1]) for pair in _PAIRS) > MOST_LEVELS and _is_deep(data):
        at = _find_deep(data)
        if at is not None:
            raise InputError(
                f"{_place(name, data, at)}: error: this is nested more than {MOST_LEVELS} levels "
                "deep, which aotc does not take."
            )
    if data.count(b"\n#") + data.count(b"\n!") > _MOST_ALIASES:
        _check_aliases(name, data)


def check_levels(name: str, operation: Any) -> None:
    """Raises InputError for operations that are nested too deep. It is for bytecode, which has no
    text."""
    level = [operation]
    for _ in range(MOST_LEVELS):
        level = [
            inner.operation
            for outer in level
            for region in outer.regions
            for block in region.blocks
            for inner in block.operations
            if len(inner.operation.regions) > 0
        ]
        if not level:
            return
    raise InputError(
        f"{name}: its operations are nested more than {MOST_LEVELS} levels deep, which aotc does "
        "not take."
    )


def _is_deep(data: bytes) -> bool:
    """Whether brackets may be nested too deep: pairs of brackets are removed from the inside."""
    for part in _NO_BRACKETS:
        data = data.replace(part, b"")
    brackets = data.replace(b"//", _COMMENT).translate(_ALL_ALIKE, _NOT_KEPT)
    brackets = _HIDDEN.sub(b"", brackets).replace(b"\n", b"")
    for _ in range(MOST_LEVELS):
        before = len(brackets)
        brackets = brackets.replace(b"()", b"")
        if len(brackets) == before:
            # In a correct file nothing is left; in another one, brackets without a partner.
            return before > MOST_LEVELS
    return len(brackets) > 0


def _find_deep(data: bytes) -> int | None:
    """The offset of the first bracket that opens one level too many."""
    opened: list[int] = []
    for token in _TOKEN.finditer(data):
        bracket = data[token.start()]
        if token.end() - token.start() > 1:
            continue  # a string, a comment, an arrow
        if bracket in _OPENING:
            opened.append(bracket)
            if len(opened) > MOST_LEVELS:
                return token.start()
        elif _CLOSING[bracket] in opened:
            while opened.pop() != _CLOSING[bracket]:
                pass
    return None


def _check_aliases(name: str, data: bytes) -> None:
    levels: dict[bytes, int] = {}
    for definition in _ALIAS.finditer(data):
        used = _USED_ALIAS.findall(definition[2])
        level = 1 + max((levels.get(alias, 0) for alias in used), default=0)
        levels[definition[1]] = level
        if level > _MOST_ALIASES:
            raise InputError(
                f"{_place(name, data, definition.start(1))}: error: this alias is made of more "
                f"than {_MOST_ALIASES} others, one of the other, which aotc does not take."
            )


def _place(name: str, data: bytes, at: int) -> Place:
    start = data.rfind(b"\n", 0, at) + 1
    return Place(name, data.count(b"\n", 0, at) + 1, at - start + 1)
