"""Errors of a front end in the format of aotc's own: place, message, source line and caret."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath

from msgspec import Struct

from aotc.errors import InputError


class Problem(Struct, frozen=True):
    """A problem at a line and column (in bytes) of a file, both counted from 1.

    `severity` is "note" for an additional place that belongs to the previous problem.
    """

    line: int
    column: int
    message: str
    severity: str = "error"


def input_error(
    path: str | PathLike[str], text: str, problems: Iterable[Problem], *, hint: str | None = None
) -> InputError:
    """One error for all problems of the file `path`, whose content is `text`."""
    # These modules load the bindings, which the parsing of the command line does not need.
    from aotc.input.place import Place
    from aotc.input.source import excerpt

    name, lines = fspath(path), tuple(text.split("\n"))
    parts: list[str] = []
    for problem in problems:
        place = Place(name, problem.line, problem.column)
        parts.append(f"{place}: {problem.severity}: {problem.message}")
        if shown := excerpt(place, name, lines):
            parts.append(shown)
    return InputError("\n".join(parts), hint=hint)
