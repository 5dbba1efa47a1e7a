"""The lines of tables and keys in a TOML file, which `tomllib` does not report."""

from __future__ import annotations

import re

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"


class Lines:
    """The lines of tables and keys, as far as they can be determined from each line alone."""

    def __init__(self, text: str) -> None:
        self._places: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        for number, line in enumerate(text.splitlines(), start=1):
            if found := re.match(rf"\s*\[\s*({_DOTTED})\s*\]", line):
                table = _names(found[1])
                self._places.setdefault(table, number)
            elif found := re.match(rf"\s*({_DOTTED})\s*=", line):
                # `a.b = 1` in table [c] is the key c.a.b, in table c.a.
                names = _names(found[1])
                for end in range(1, len(names) + 1):
                    self._places.setdefault((*table, *names[:end]), number)

    def of(self, *names: str) -> int | None:
        """The line of a table or key, one-based: `of("target", "kernels", "chips")`."""
        return self._places.get(names)


def _names(dotted: str) -> tuple[str, ...]:
    return tuple(word.strip("\"'") for word in re.findall(_KEY, dotted))


def line_of_error(message: str, text: str) -> tuple[int, str]:
    """The line number and the message of an error of `tomllib` about the text."""
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", message)
    if found is None:
        return 1, message
    return int(found[2] or len(text.splitlines())), f"{found[1]}."
