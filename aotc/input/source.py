"""MLIR text or bytecode → `Source`: the parsed module with its text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from aotc import mlir
from aotc.errors import MOST_SHOWN, InputError, ToolError
from aotc.input.blobs import Blobs
from aotc.input.changes import explain, explain_dialect, explain_text, find_change
from aotc.input.depth import check_depth, check_levels
from aotc.input.kinds import kind_of_bytes, kind_of_text
from aotc.input.place import Place
from aotc.mlir import ir
from aotc.ops import text_of
from aotc.pipes import read_file, read_stdin

BYTECODE_MAGIC = b"ML\xefR"
# An attribute where a string is expected, in `iterator_types` (of an operation, or of an alias for
# its attributes). It makes the parser of these bindings run out of memory, or crash.
_TOO_MUCH = re.compile(
    r"(?:(?:linalg\.generic|vector\.contract)\s*|^#\w+\s*=\s*)\{[^}]{0,4000}?iterator_types\s*=\s*\["
    r"\s*(?:\"[^\"\n]*\"\s*,\s*)*[^\"\s\],]",
    re.MULTILINE,
)
# The name that `ir.Module.parse` gives its input in locations.
_UNNAMED = '"-"'
# Limits of messages, in characters.
_LONGEST_LINE = 160
_LONGEST_PRODUCER = 80
_LONGEST_MESSAGE = 1000
# The bindings raise this, and lose the diagnostics, if a diagnostic quotes a name that is not
# UTF-8.
_NO_MESSAGE = "str_from_cstr"
# The beginning of a note that prints an operation with all of its content.
_DUMP = "see current operation"


# A location, and the problem there.
Problem = tuple[Any, str]


class ParseError(InputError):
    """MLIR refused a text. `problems` are its messages, with their places in the text."""

    problems: tuple[tuple[Place, str], ...] = ()


class Source(Struct, frozen=True):
    """A module, and the text that it was parsed from.

    `lines` is empty for bytecode. Large constants are shortened in it (see `blobs`).
    """

    name: str
    lines: tuple[str, ...]
    module: Any

    def place(self, location: Any) -> Place | None:
        """The first file place in an MLIR location, which may be a name, a call or a fusion."""
        return find_place(str(location), self.name)

    def line(self, number: int) -> str | None:
        """The text of line `number` (from 1); None if there is no such line."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else None


def read_source(path: Path) -> bytes:
    """The bytes of `path`, or of standard input for `-`."""
    if str(path) == "-":
        return read_stdin()
    try:
        return read_file(path)
    except IsADirectoryError:
        raise InputError(f"Cannot read '{path}': it is a directory, not an .mlir file.") from None
    except OSError as error:
        raise InputError(f"Cannot read '{path}': {error.strerror or error}.") from None


def parse_source(name: str, data: bytes, context: Any, *, locations: bool = False) -> Source:
    """Parses and verifies `data`, MLIR text or bytecode, in `context`.

    With `locations`, the operations' locations have the file's name (for debug information).
    Raises InputError with file:line:column, the line and a caret.
    """
    is_bytecode = data.startswith(BYTECODE_MAGIC)
    blobs = Blobs()
    if not is_bytecode:
        short = blobs.take(data)
        if blobs:
            source = _parse_short(name, short, blobs, context, locations=locations)
            if source is not None:
                return source
    text = "" if is_bytecode else _decode(name, data)
    if not is_bytecode:
        check_depth(name, data)
    lines = () if is_bytecode else tuple(text.split("\n"))
    if _TOO_MUCH.search(text):
        raise InputError(
            f"{name}: the MLIR parser cannot read this. {_version_note(is_bytecode=False)}",
            hint=explain_text(lines),
        )
    with context:
        try:
            module = ir.Module.parse(data if is_bytecode else text)
            if locations and not is_bytecode:
                module = _name_locations(module, name)
        except ir.MLIRError as error:
            raise _refusal(error, name, text, data if is_bytecode else b"") from None
        except (RuntimeError, ValueError, TypeError) as error:  # raised by the bindings
            raise _unreadable(name, str(error), is_bytecode=is_bytecode) from None
        except MemoryError:  # for example, an array of strings that has another attribute
            raise InputError(
                f"Cannot read {name}: MLIR's parser wants more memory for it than there is. "
                f"{_version_note(is_bytecode=is_bytecode)}"
            ) from None
    if is_bytecode:
        check_levels(name, module.operation)
    return Source(name, lines, module)


def damaged(name: str, reason: str) -> InputError:
    """The error for bytecode that is corrupt."""
    return InputError(
        f"{name} is damaged bytecode: {reason}.", hint="write it again, or give aotc the text."
    )


def _unreadable(name: str, said: str, *, is_bytecode: bool) -> InputError:
    """The error for an exception of the bindings that is not a diagnostic of MLIR."""
    reason = (
        "MLIR refuses it with a message that is not UTF-8" if _NO_MESSAGE in said else said.strip()
    )
    return damaged(name, reason) if is_bytecode else InputError(f"Cannot read {name}: {reason}.")


def adopt_module(name: str, frontend: str, bytecode: bytes, path: Path, context: Any) -> Source:
    """The module that a front end made of the file `path`.

    If its locations name the file, they are changed to `name`, and errors show the file's lines
    (if it is text). Raises ToolError for a module that MLIR refuses.
    """
    try:
        lines = tuple(path.read_text(encoding="utf-8").split("\n"))
    except (OSError, UnicodeDecodeError):
        lines = ()
    with context:
        try:
            adopted = ir.Module.parse(bytecode)
            if str(path) != name:  # a temporary file of aotc's, for input that was in no file
                adopted = _rename_file(adopted, str(path), name)
            return Source(name, lines, adopted)
        except ir.MLIRError as error:
            said = describe_diagnostics(error, name, lines)
            raise ToolError(
                f"The front end '{frontend}' made a module of {name} that MLIR refuses:\n{said}"
            ) from None


def bytecode_of(operation: Any) -> bytes:
    """An operation as bytecode, to be read by other bindings: each package of bindings has its own
    contexts."""
    buffer = io.BytesIO()
    operation.write_bytecode(buffer)
    return buffer.getvalue()


def _parse_short(
    name: str, data: bytes, blobs: Blobs, context: Any, *, locations: bool
) -> Source | None:
    """The source of a text without its large constants; None if they cannot be put back."""
    try:
        source = parse_source(name, data, context, locations=locations)
    except InputError:
        if not blobs.has_dense:
            raise
        return None  # an operation may require a `dense` attribute
    with context, ir.Location.unknown():
        return source if blobs.give_back(source.module) else None


def _decode(name: str, data: bytes) -> str:
    """The text of `data`, without a byte order mark."""
    kind = kind_of_bytes(data)
    if kind is not None:
        raise InputError(f"{name} is {kind.what}, not MLIR.", hint=kind.instead)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is neither MLIR text (UTF-8) nor MLIR bytecode: {error}"
        ) from None
    if not text.strip():
        raise InputError(f"{name} is empty.")
    return text


def _refusal(error: Any, name: str, text: str, bytecode: bytes) -> InputError:
    """The error for text or bytecode that MLIR refused: where, why, and what to do."""
    lines = tuple(text.split("\n"))
    said = describe_diagnostics(error, name, lines)
    message = f"{said}\n{_version_note(is_bytecode=bool(bytecode))}"
    if bytecode:
        message = f"Cannot read the bytecode of {name}:\n{message}"
        return InputError(message, hint=_bytecode_hint(message, bytecode))
    kind = kind_of_text(text)
    if kind is not None:
        return InputError(f"{name} looks like {kind.what}, not MLIR.\n{message}", hint=kind.instead)
    problems = tuple(_placed(error, name))
    refusal = ParseError(message, hint=_hint(problems, lines))
    refusal.problems = problems
    return refusal


def _placed(error: Any, name: str) -> Iterator[tuple[Place, str]]:
    for diagnostic in error.error_diagnostics:
        place = find_place(str(diagnostic.location), name)
        if place is not None and place.file == name:
            yield place, str(diagnostic.message)


def _bytecode_hint(message: str, bytecode: bytes) -> str | None:
    newer = re.search(r"is newer than the current version (\d+)", message)
    if newer is None:
        return explain_dialect(message)
    # The version is followed by the producer's name, up to a zero byte.
    named = bytecode[len(BYTECODE_MAGIC) + 1 :][:_LONGEST_PRODUCER].split(b"\0")[0]
    producer = "".join(c if c.isprintable() else "?" for c in named.decode("ascii", "replace"))
    return (
        f"it was written by {producer}. That can write what is read here: mlir-opt "
        f"--emit-bytecode --emit-bytecode-version={newer[1]}; or give aotc the text."
    )


def _name_locations(module: Any, name: str) -> Any:
    # The bindings cannot name the input when they parse a module with several operations, so the
    # locations are renamed in the printed form.
    printed = text_of(module.operation, enable_debug_info=True)
    return ir.Module.parse(re.sub(rf"loc\({_UNNAMED}:", lambda _: f"loc({_quoted(name)}:", printed))


def _rename_file(module: Any, file: str, name: str) -> Any:
    """The module, with `file` renamed to `name` in its locations. As the bindings cannot change
    locations, a module that has such locations is printed and parsed again."""
    if file.encode() not in bytecode_of(module.operation):
        return module
    printed = text_of(module.operation, enable_debug_info=True)
    return ir.Module.parse(printed.replace(f"{_quoted(file)}:", f"{_quoted(name)}:"))


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _hint(problems: Sequence[tuple[Place, str]], lines: tuple[str, ...]) -> str | None:
    """What to write today, for the first problem that a change of MLIR's text explains."""
    for place, message in problems:
        hint = explain(message, lines, place.line, place.column)
        if hint is not None:
            change = find_change(message, lines, place.line, place.column)
            is_fixable = change is not None and change.fix
            return f"{hint}\n'aotc upgrade FILE' writes the new text." if is_fixable else hint
    return None


def _version_note(*, is_bytecode: bool) -> str:
    form = "bytecode of most dialects" if is_bytecode else "text format"
    return (
        f"aotc reads the MLIR of LLVM {mlir.bindings().llvm_version}. MLIR's {form} is not "
        "stable between releases: input written for another one may not parse."
    )


def describe_diagnostics(error: Any, name: str, lines: tuple[str, ...]) -> str:
    """The diagnostics of an MLIR error as text: place, message, line, caret, notes."""
    parts: list[str] = []
    diagnostics = error.error_diagnostics
    for diagnostic in diagnostics[:MOST_SHOWN]:
        _describe(diagnostic, "error", name, lines, parts)
    parts += and_more(len(diagnostics))
    return "\n".join(parts) or _short(str(error))


def and_more(count: int) -> list[str]:
    """The line that follows the problems that are shown, if there are more."""
    return [f"and {count - MOST_SHOWN} more errors"] if count > MOST_SHOWN else []


def _short(message: str) -> str:
    if len(message) <= _LONGEST_MESSAGE:
        return message
    return f"{message[:_LONGEST_MESSAGE]}..."


def _describe(
    diagnostic: Any, severity: str, name: str, lines: tuple[str, ...], parts: list[str]
) -> None:
    place = find_place(str(diagnostic.location), name)
    message = _short(diagnostic.message.strip().replace("`", "'"))
    if message.startswith(_DUMP):
        return
    if place is None:
        parts.append(f"{severity}: {message}")
    else:
        parts.append(f"{place}: {severity}: {message}")
        if shown := excerpt(place, name, lines):
            parts.append(shown)
    for note in diagnostic.notes:
        _describe(note, "note", name, lines, parts)


def excerpt(place: Place, name: str, lines: tuple[str, ...]) -> str:
    """The line of `place` with a caret under its column; empty if `lines` do not have it."""
    if place.file != name or not 0 < place.line <= len(lines):
        return ""
    text, before = _part(lines[place.line - 1], max(0, place.column - 1))
    # Tabs are kept in the second line, so that the caret is below its column.
    margin = "".join("\t" if c == "\t" else " " for c in before)
    return f"  {text}\n  {margin}^"


def input_error(
    source: Source, problems: Sequence[Problem], *, hint: str | None = None
) -> InputError:
    """One error for all problems, each a location and a message."""
    parts: list[str] = []
    for location, message in problems[:MOST_SHOWN]:
        place = source.place(location)
        where = f"{place}: error: " if place else _node_prefix(location)
        parts.append(where + message)
        if place and (shown := excerpt(place, source.name, source.lines)):
            parts.append(shown)
    parts += and_more(len(problems))
    return InputError("\n".join(parts), hint=hint)


def _node_prefix(location: Any) -> str:
    node = find_node(str(location))
    return f"{node}: " if node else ""


def find_node(location: str) -> str | None:
    """The node of an ONNX model that a printed location names."""
    found = re.search(r'loc\("(onnx\.(?:[^"\\]|\\.)*)"', location)
    return found[1] if found else None


def _part(line: str, column: int) -> tuple[str, str]:
    """A line, or the part of it around a column (in bytes, from 0), and its text before the
    column."""
    if len(line) <= _LONGEST_LINE:
        return line, line.encode()[:column].decode(errors="ignore")
    # The line may be a constant of many megabytes. Its columns count characters here.
    start = max(0, column - _LONGEST_LINE // 2)
    end = start + _LONGEST_LINE
    opening, closing = "…" if start else "", "…" if end < len(line) else ""
    return f"{opening}{line[start:end]}{closing}", f"{opening}{line[start:column]}"


def find_place(location: str, name: str) -> Place | None:
    """The first file:line:column in a printed location. `name` replaces the name of unnamed
    input."""
    found = re.search(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)', location)
    # Bytecode has no lines: its errors are at line 0.
    if found is None or found[2] == "0":
        return None
    file = name if f'"{found[1]}"' == _UNNAMED else found[1]
    return Place(file, int(found[2]), int(found[3]))
