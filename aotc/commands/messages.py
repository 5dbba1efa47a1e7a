"""How a failure reads on a terminal."""

from __future__ import annotations

import re

from aotc.errors import AotcError, ToolError


def error_text(error: AotcError, name: str = "aotc") -> str:
    """All that there is to say of it, without a line break at the end.

    `name` stands first where the message has no place in a file: the input's, if there are others.
    """
    has_place = re.match(r"\S+?(?::\d+){1,2}: error: ", error.message)
    lines = [error.message if has_place else f"{name}: error: {error.message}"]
    if isinstance(error, ToolError):
        if error.stderr:
            lines.append(error.stderr.rstrip("\n"))
        if error.command:
            import shlex

            lines.append(f"aotc: the command was: {shlex.join(error.command)}")
    if error.hint:
        lines.append(f"aotc: hint: {error.hint}")
    return "\n".join(lines)
