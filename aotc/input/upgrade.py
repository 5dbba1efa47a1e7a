"""Text of an older MLIR → the text that this MLIR reads, where it can be derived from the old one.

MLIR's parser reports where it fails, and the table of changes (`changes.py`) why. The `fix` of the
change is applied there, and the text is parsed again, until it parses or no change is known.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from aotc import mlir
from aotc.errors import InputError
from aotc.input.changes import Change, Rename, find_change, find_shown
from aotc.input.fixes import NoFixError, aliases, apply_fix, pattern
from aotc.input.source import BYTECODE_MAGIC, ParseError, parse_source

# A statement is searched in so many characters before an error, and as many after it.
_AROUND = 8192
# The limit for one text, as each change takes another parse.
_MOST_FIXES = 10_000


class Upgrade(Struct, frozen=True):
    """The result of an upgrade. `says` describes the changes that were applied, each once;
    `problem` is the error that is left."""

    text: str
    says: tuple[str, ...]
    problem: InputError | None


def upgrade(name: str, data: bytes) -> Upgrade:
    """Upgrades the text `data` as far as possible. Raises InputError if it is not MLIR text."""
    if data.startswith(BYTECODE_MAGIC):
        raise InputError(
            f"{name} is bytecode, and text alone can be upgraded.",
            hint="the mlir-opt that wrote it can write it as text.",
        )
    context = mlir.make_context()
    problem = _problem(name, data, context)
    text = data.decode("utf-8-sig") if _is_text(data) else ""
    says: dict[str, None] = {}
    seen: set[int] = set()
    while problem is not None and len(seen) < _MOST_FIXES:
        # A text that has occurred before would lead to an endless loop.
        if hash(text) in seen or (step := _fixed(text, problem)) is None:
            break
        seen.add(hash(text))
        text, said = step
        says.setdefault(said)
        problem = _problem(name, text.encode(), context)
    return Upgrade(text, tuple(says), problem)


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return False
    return True


def _problem(name: str, data: bytes, context: Any) -> InputError | None:
    try:
        parse_source(name, data, context)
    except InputError as error:
        return error
    return None


def _fixed(text: str, problem: InputError) -> tuple[str, str] | None:
    """The text with one change applied, and a description of it; None if no change is known."""
    lines = text.split("\n")
    if not isinstance(problem, ParseError):
        # The error was found before MLIR's parser ran.
        shown = find_shown(lines)
        return None if shown is None else (_changed_elsewhere(text, shown), shown.says)
    for place, message in problem.problems:
        change = find_change(message, lines, place.line, place.column)
        if isinstance(change, Rename):
            new, says = _renamed(text, change), f"{change.old} is {change.new}"
        elif change is not None:
            offset = _offset(lines, place.line, place.column)
            new, says = _changed(text, change, offset), change.says
        else:
            continue
        if new != text:
            return new, says
    return None


def _offset(lines: list[str], number: int, column: int) -> int:
    """The offset of a place in the text, in characters. Columns count bytes."""
    before = sum(len(line) + 1 for line in lines[: number - 1])
    line = lines[number - 1].encode()[: max(column - 1, 0)]
    return before + len(line.decode(errors="ignore"))


def _renamed(text: str, rename: Rename) -> str:
    """The text with the new name, wherever a statement begins with the old name."""
    name = re.escape(rename.old)
    plain = re.compile(
        rf"(^[ \t]*(?:%[\w$.:, %#-]+?=\s*)?|[={{]\s*){name}(?=[\s(<\[%@])", re.MULTILINE
    )
    text = plain.sub(rf"\g<1>{rename.new}", text)
    return text.replace(f'"{rename.old}"(', f'"{rename.new}"(')


def _changed(text: str, change: Change, offset: int) -> str:
    """The text with a change applied at `offset`, and in other lines that have its old form."""
    for find, replace in change.fix:
        for found in _near(pattern(find), text, offset):
            try:
                new = apply_fix(found, replace, aliases(text))
            except NoFixError:
                continue
            if new != found[0]:
                text = text[: found.start()] + new + text[found.end() :]
                return _changed_elsewhere(text, change)
    return text


def _near(find: re.Pattern[str], text: str, offset: int) -> Iterator[re.Match[str]]:
    """Matches, the nearest first: those around the place or that end at it, those after it in its
    line, those before it, those after it."""
    start, end = max(0, offset - _AROUND), offset + _AROUND
    start = text.rfind("\n", 0, start) + 1
    line = text.rfind("\n", 0, offset) + 1
    line_end = (text.find("\n", offset) + 1 or len(text) + 1) - 1
    matches = [found for found in find.finditer(text, start, end) if not _in_comment(text, found)]

    def distance(found: re.Match[str]) -> tuple[int, int]:
        if found.start() <= offset and not text[found.end() : offset].strip():
            return 0, -found.start()
        if line <= found.start() <= line_end:
            return 1, found.start()
        return (2, -found.start()) if found.start() < offset else (3, found.start())

    return iter(sorted(matches, key=distance))


def _in_comment(text: str, found: re.Match[str]) -> bool:
    line = text.rfind("\n", 0, found.start()) + 1
    return text[line : found.start()].lstrip().startswith("//")


def _changed_elsewhere(text: str, change: Change) -> str:
    """The text with a change applied in each line whose first old form is the one of this
    change."""
    if change.error is not None:
        return text
    names = aliases(text)
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if change.is_shown_by(line) and change is find_shown([line]):
            lines[number] = _changed_line(line, change, names)
    return "\n".join(lines)


def _changed_line(line: str, change: Change, names: Mapping[str, str]) -> str:
    if line.lstrip().startswith("//"):
        return line
    for find, replace in change.fix:
        made = functools.partial(apply_fix, replace=replace, names=names)
        try:
            line = pattern(find).sub(made, line)
        except NoFixError:
            continue
    return line
