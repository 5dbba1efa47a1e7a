"""`check`: the problems of an input, as diagnostics of the Language Server Protocol (3.17), without
a build."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from aotc.artifact_kind import MLIR
from aotc.errors import EXIT_INPUT, EXIT_INTERNAL, EXIT_TOOL, AotcError
from aotc.pipeline import new_build, run_build
from aotc.request import BuildRequest
from aotc.warnings import BuildWarning, Severity

_SEVERITIES = {"error": 1, "warning": 2}
_CODES = {EXIT_INPUT: "input", EXIT_TOOL: "tool", EXIT_INTERNAL: "internal"}
# "file:1:2: error: message"; excerpts, notes and general text follow.
_PLACED = re.compile(r"(.+?):(\d+):(\d+): (error|warning|note): (.*)")
_NAMED = re.compile(r"(.*) \[-W(?:error=)?([a-z-]+)\]")
_EXCERPT = "  "
# The text that an editor underlines: a word of MLIR, or one character.
_WORD = re.compile(r"""[\w.$%@#^!"-]+|.""")


class Position(Struct, frozen=True):
    """A zero-based line and character; characters count UTF-16 code units."""

    line: int = 0
    character: int = 0


class Range(Struct, frozen=True):
    """The half-open range from `start` to `end`."""

    start: Position = Position()
    end: Position = Position()


class Location(Struct, frozen=True):
    """A range in a file."""

    uri: str
    range: Range


class Related(Struct, frozen=True):
    """A note that refers to another place."""

    location: Location
    message: str


class Diagnostic(Struct, frozen=True, rename="camel"):
    """A problem, or a possible problem. `severity` is 1 for an error and 2 for a warning. `code` is
    the name of a warning, or the family of an error: input, tool, internal."""

    range: Range
    severity: int
    code: str
    message: str
    source: str = "aotc"
    related_information: tuple[Related, ...] = ()


class Checked(Struct, frozen=True):
    """All diagnostics of an input; `failure` is the error that a build would end with."""

    uri: str
    diagnostics: tuple[Diagnostic, ...]
    warnings: tuple[BuildWarning, ...] = ()
    failure: AotcError | None = None


def check(request: BuildRequest, folder: Path, tools: Mapping[str, Path]) -> Checked:
    """Reads the input and lowers it up to kernel outlining; `folder` is for temporary files."""
    request = replace(request, emit=(MLIR,), out=None)
    failure: AotcError | None = None
    warnings: list[BuildWarning] = []
    try:
        build = new_build(request, folder, tools=tools)
        warnings = build.log.warnings
        run_build(build)
    except AotcError as error:
        failure = error
    lines = _Lines(request)
    found = [
        _of_warning(warning, severity, lines)
        for warning in dict.fromkeys(warnings)
        if (severity := request.warnings.severity(warning.name, is_sure=warning.is_sure))
        is not Severity.HIDDEN
    ]
    if failure is not None:
        # Warnings that are treated as errors are in both.
        found += [one for one in _of_failure(failure, lines) if one not in found]
    ordered = sorted(found, key=lambda one: (one.range.start.line, one.range.start.character))
    return Checked(lines.uri, tuple(ordered), tuple(dict.fromkeys(warnings)), failure)


class _Lines:
    """The lines of the input, for converting places to ranges."""

    def __init__(self, request: BuildRequest) -> None:
        self.name = "<stdin>" if str(request.source) == "-" else str(request.source)
        self.uri = "untitled:stdin" if str(request.source) == "-" else _uri(request.source)
        content = request.content
        if content is None and request.source.is_file():
            content = request.source.read_bytes()
        self._lines = (content or b"").split(b"\n")

    def range(self, line: int, column: int) -> Range:
        """The range of the word at a line and a column, both one-based; columns count bytes."""
        if not 0 < line <= len(self._lines):
            return Range()
        text = self._lines[line - 1].rstrip(b"\r")
        before = text[: max(0, column - 1)].decode(errors="replace")
        found = _WORD.match(text.decode(errors="replace"), len(before))
        start = _units(before)
        return Range(
            Position(line - 1, start),
            Position(line - 1, start + (_units(found[0]) if found else 0)),
        )

    def location(self, file: str, line: int, column: int) -> Location:
        if file == self.name:
            return Location(self.uri, self.range(line, column))
        at = Position(max(0, line - 1), max(0, column - 1))
        return Location(_uri(Path(file)), Range(at, at))


def _uri(path: Path) -> str:
    return path.absolute().as_uri()


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _of_warning(warning: BuildWarning, severity: Severity, lines: _Lines) -> Diagnostic:
    place = warning.place
    is_here = place is not None and place.file == lines.name
    return Diagnostic(
        lines.range(place.line, place.column) if place is not None and is_here else Range(),
        _SEVERITIES[severity.value],
        warning.name,
        warning.message if is_here or place is None else f"{place}: {warning.message}",
        related_information=tuple(_notes(warning.notes, lines)),
    )


def _notes(texts: Iterable[str], lines: _Lines) -> Iterator[Related]:
    for text in texts:
        found = _PLACED.match(text)
        if found is not None:
            yield Related(lines.location(found[1], int(found[2]), int(found[3])), found[5])


def _of_failure(failure: AotcError, lines: _Lines) -> list[Diagnostic]:
    """The problems in an error's message, each at its place. If none has a place in the file, the
    whole message at the start of the file."""
    code = _CODES[failure.exit_code]
    hint = f"\n{failure.hint}" if failure.hint else ""  # appended to the first problem
    found: list[Diagnostic] = []
    text = failure.message.split("\n")
    for placed in filter(None, map(_PLACED.match, text)):
        file, line, column, severity, message = placed.groups()
        if severity == "note" and found:
            related = Related(lines.location(file, int(line), int(column)), message)
            notes = (*found[-1].related_information, related)
            found[-1] = replace(found[-1], related_information=notes)
        elif severity != "note" and file == lines.name:
            named = _NAMED.fullmatch(message)
            where = lines.range(int(line), int(column))
            found.append(
                Diagnostic(
                    where, _SEVERITIES[severity], code, message + (hint if not found else "")
                )
                if named is None
                else Diagnostic(where, _SEVERITIES[severity], named[2], named[1])
            )
    if not found:
        said = "\n".join(line for line in text if not line.startswith(_EXCERPT))
        found.append(Diagnostic(Range(), _SEVERITIES["error"], code, said + hint))
    return found
