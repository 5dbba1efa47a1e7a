"""Changes of MLIR's text format: what to write today in place of text that does not parse.

The table of changes is in `changes.toml`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, convert

from aotc import mlir
from aotc.errors import near_names

_FILE = Path(__file__).with_name("changes.toml")
# How MLIR's messages name an unknown operation.
_UNKNOWN = (
    r"custom op '([\w.$-]+)' is unknown",
    r"Dialect [`'][\w.$-]*' not found for custom op '([\w.$-]+)'",
    r"unregistered operation '([\w.$-]+)'",
)
_SPLIT = re.compile(r"// -----")
_BY_VERIFIER = re.compile(r"'[\w.$-]+' op ")
_UNREGISTERED = "operation being parsed with an unregistered dialect"
# MLIR's message for a type or an attribute of an unknown dialect.
_FOREIGN = re.compile(r'[!#]"?(\w+)(?:"<|\.).*(?:type|attribute) created with unregistered')

# Old forms are searched in so many bytes around an error, or at the end of the line before. Where
# MLIR reports no place, or for lines further down, texts of up to so many characters are searched.
_AROUND = 4096
_LARGEST_TEXT = 1 << 20
# Lines before an error that may belong to the same statement.
_STATEMENT = 24


class Change(Struct, frozen=True):
    """One change of MLIR's text. The head of `changes.toml` describes the fields."""

    says: str
    old: str
    new: str
    ops: tuple[str, ...] = ()
    line: str | None = None
    error: str | None = None
    within: str = "function"
    fix: tuple[tuple[str, str], ...] = ()

    def fits(self, operation: str | None, lines: str, error: str) -> bool:
        """Whether this change explains why `lines` do not parse: it changed the unknown operation,
        or the old form is in the lines."""
        if self.line is None:
            return operation in self.ops
        if re.search(self.line, lines, re.MULTILINE) is None:
            return False
        if self.error is None:
            # A message of the verifier: the text was parsed, so it has no old form.
            return _BY_VERIFIER.match(error) is None
        return re.search(self.error, error) is not None

    def hint(self, rest: Sequence[str] = ()) -> str:
        """What changed, an example, and how many lines of `rest` have the old form as well."""
        more = sum(map(self.is_shown_by, rest))
        also = f" ({more} more line{'s' if more > 1 else ''} below)" if more else ""
        example = "\n".join(f"  {line}" for line in self.new.split("\n"))
        return f"{self.says}{also}:\n{example}"

    def is_shown_by(self, line: str) -> bool:
        """Whether a line has the old form, whatever MLIR's message is."""
        if self.line is None:
            return any(re.search(rf"(?<![\w.]){re.escape(op)}(?![\w.])", line) for op in self.ops)
        return bool(self.line) and self.error is None and re.search(self.line, line) is not None


class Rename(Struct, frozen=True):
    """An operation of which only the name changed."""

    old: str
    new: str

    # True: `aotc upgrade` can always write the new name.
    fix: bool = True

    def hint(self, rest: Sequence[str] = ()) -> str:
        """What the operation's name is now."""
        return f"{self.old} is {self.new} now."


class Changes(Struct, frozen=True):
    """The table of all changes."""

    renamed: dict[str, str]
    dialects: dict[str, str]
    changes: tuple[Change, ...]

    def find(
        self, error: str, lines: Sequence[str], number: int, column: int
    ) -> Change | Rename | None:
        """The change because of which MLIR refused text with `error` at line `number` (from 1) and
        `column`; None if no change is known."""
        line, column = _near(lines[number - 1], column)
        operation = unknown_operation(error, line, column)
        bare = operation.removeprefix("std.") if operation else None
        if operation is not None and bare in self.renamed:
            return Rename(operation, self.renamed[bare])
        # A parser that expects more at the end of a line reports the next line.
        before = next((text for text in reversed(lines[: number - 1]) if text.strip()), "")
        for around in (line, f"{before[-_AROUND:]}\n{line}"):
            for change in self.changes:
                if change.fits(operation, around, error):
                    return change
        if operation is not None or _BY_VERIFIER.match(error):
            return None
        # Text that was parsed has no old form, so one in the lines before is of this statement.
        statement = "\n".join(lines[max(0, number - _STATEMENT) : number])[-_AROUND:]
        for change in self.changes:
            if change.line and change.error is None and re.search(change.line, statement):
                return change
        return None

    def explain(self, error: str, lines: Sequence[str], number: int, column: int) -> str | None:
        """What to write today in place of text that MLIR refused with `error` at line `number`
        (from 1) and `column`; None if nothing is known."""
        if (change := self.find(error, lines, number, column)) is not None:
            rest = lines[number:]
            return change.hint(rest if _is_short(rest) else ())
        if foreign := _FOREIGN.search(error):
            return self.owner(foreign[1])
        operation = unknown_operation(error, *_near(lines[number - 1], column))
        return None if operation is None else self._foreign(operation)

    def _foreign(self, operation: str) -> str | None:
        dialect, _, name = operation.partition(".")
        if not name:
            return None
        known = mlir.operations_of(dialect)
        if not known:
            return self.owner(dialect)
        near = near_names(operation, known, most=3, cutoff=0.7)
        return f"did you mean {' or '.join(near)}?" if near else None

    def owner(self, dialect: str) -> str:
        """Which project has a dialect that MLIR does not have, and what lowers it."""
        whose = self.dialects.get(dialect, "not MLIR's own: lower it first, with what made it")
        return f"the dialect '{dialect}' is {whose}."


def _near(line: str, column: int) -> tuple[str, int]:
    """The part of a line around `column` (in bytes, from 1), and the column in that part."""
    if len(line) <= _AROUND:
        return line, column
    start = max(0, column - 1 - _AROUND // 2)
    part = line.encode()[start : start + _AROUND]
    return part.decode(errors="ignore"), column - start


def _is_short(lines: Sequence[str]) -> bool:
    return sum(map(len, lines)) <= _LARGEST_TEXT


def unknown_operation(error: str, line: str, column: int) -> str | None:
    """The operation that MLIR does not know, taken from its message or from the error's place."""
    for pattern in _UNKNOWN:
        if found := re.search(pattern, error):
            return found[1]
    if _UNREGISTERED in error:
        # The place is after the operation's name, which is in quotes.
        start = line.encode()[: max(column - 1, 0)].decode(errors="ignore")
        if names := re.findall(r'"([\w.$-]+)"', start) or re.findall(r'"([\w.$-]+)"', line):
            return str(names[-1])
    return None


@functools.cache
def table() -> Changes:
    """The table of `changes.toml`."""
    import tomllib  # only needed for errors

    data = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    changes = tuple(convert(row, Change) for row in data["change"])
    return Changes(data["renamed"], data["dialects"], changes)


def explain_dialect(error: str) -> str | None:
    """Which project has the unknown dialect of bytecode, taken from MLIR's message."""
    found = re.search(r"dialect '(\w+)' is unknown", error)
    return table().owner(found[1]) if found else None


def find_shown(lines: Sequence[str]) -> Change | None:
    """The first change whose old form is in some line, for errors without a place; None for a long
    text."""
    if not _is_short(lines):
        return None
    for line in lines:
        for change in table().changes:
            if change.is_shown_by(line):
                return change
    return None


def explain_text(lines: Sequence[str]) -> str | None:
    """What to write today, for the first old form in the lines (see `find_shown`)."""
    change = find_shown(lines)
    return None if change is None else change.hint()


def find_change(
    error: str, lines: Sequence[str], number: int, column: int
) -> Change | Rename | None:
    """The change because of which MLIR refused text at line `number` (from 1) and `column`."""
    if not 0 < number <= len(lines):
        return None
    return table().find(error, lines, number, column)


def explain(error: str, lines: Sequence[str], number: int, column: int) -> str | None:
    """What to write today in place of text that MLIR refused at line `number` (from 1) and
    `column`."""
    if not 0 < number <= len(lines):
        return None
    if "redefinition of symbol" in error and any(map(_SPLIT.match, lines)):
        return "the file holds several modules, for -split-input-file: give aotc one of them."
    return table().explain(error, lines, number, column)
