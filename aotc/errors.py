"""The failures that aotc reports, in three families, each with its exit code.

* `InputError` (2): the user's module or command line is at fault.
* `ToolError` (3): a tool that aotc runs is missing or failed.
* `InternalError` (4): aotc is at fault, by a bug or by a known limit.

A message says what was found, what was expected and what is available.
Only `aotc.cli.main` converts an error to an exit code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Self

EXIT_OK = 0
EXIT_INPUT = 2
EXIT_TOOL = 3
EXIT_INTERNAL = 4
EXIT_INTERRUPTED = 130

# Number of problems that one message shows.
MOST_SHOWN = 20

_PLACED = re.compile(r"\S+?(?::\d+){1,2}: error: ")


class AotcError(Exception):
    """A failure with a message for the user; `hint` is the next step to take."""

    exit_code: int = EXIT_INTERNAL

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def renamed(self, file: str, name: str) -> Self:
        """A copy of this error whose message calls `file` by `name`."""
        self.message = self.message.replace(file, name)
        self.args = (self.message,)
        return self

    def text(self, name: str = "aotc") -> str:
        """The text for a terminal, without a line break at the end.

        `name` is the prefix of a message without a place in a file: the input's name, if there are
        several inputs.
        """
        message = self.message
        lines = [message if _PLACED.match(message) else f"{name}: error: {message}"]
        lines += self._details()
        if self.hint:
            lines.append(f"aotc: hint: {self.hint}")
        return "\n".join(lines)

    def _details(self) -> list[str]:
        return []


class InputError(AotcError):
    """The module, an option or an output place that the user gave cannot be used."""

    exit_code = EXIT_INPUT


class ToolError(AotcError):
    """A tool is missing or failed.

    `command` is the argument list that was run (empty if none was), and `stderr` is the tool's
    output, unmodified. `is_crash` is true if the tool ended by a fault of its own.
    """

    exit_code = EXIT_TOOL

    def __init__(
        self,
        message: str,
        *,
        command: Sequence[str] = (),
        stderr: str = "",
        hint: str | None = None,
        is_crash: bool = False,
    ) -> None:
        super().__init__(message, hint=hint)
        self.command = tuple(command)
        self.stderr = stderr
        self.is_crash = is_crash

    def _details(self) -> list[str]:
        lines = [self.stderr.rstrip("\n")] if self.stderr else []
        if self.command:
            import shlex

            lines.append(f"aotc: the command was: {shlex.join(self.command)}")
        return lines


class InternalError(AotcError):
    """A bug of aotc, or a known and documented limit."""

    exit_code = EXIT_INTERNAL


def near_names(word: str, known: Iterable[str], *, most: int, cutoff: float = 0.6) -> list[str]:
    """At most `most` of `known`, the most similar first; `cutoff` is difflib's ratio."""
    import difflib  # only needed for errors

    return difflib.get_close_matches(word, list(known), n=most, cutoff=cutoff)
