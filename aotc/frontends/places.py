"""Errors of a front end, printed as aotc prints its own: place, message, line and caret."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath

from msgspec import Struct

from aotc.errors import InputError


class Problem(Struct, frozen=True):
    """What is wrong at a line and column (in bytes) of a file, both from 1.

    `severity` is "note" for another place that has to do with the problem before.
    """

    line: int
    column: int
    message: str
    severity: str = "error"


def input_error(
    path: str | PathLike[str], text: str, problems: Iterable[Problem], *, hint: str | None = None
) -> InputError:
    """One error for all the problems of the file `path`, whose text is `text`."""
    # It loads the bindings, and the command line is read without them.
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
