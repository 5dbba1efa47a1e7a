"""On which line of a TOML file a table or a key is: `tomllib` does not tell."""

from __future__ import annotations

import re

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"


class Lines:
    """The places of tables and keys, as far as a look at each line alone can tell them."""

    def __init__(self, text: str) -> None:
        self._places: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        for number, line in enumerate(text.splitlines(), start=1):
            if found := re.match(rf"\s*\[\s*({_DOTTED})\s*\]", line):
                table = _names(found[1])
                self._places.setdefault(table, number)
            elif found := re.match(rf"\s*({_DOTTED})\s*=", line):
                # `a.b = 1` in [c] is c.a.b, in the table c.a.
                names = _names(found[1])
                for end in range(1, len(names) + 1):
                    self._places.setdefault((*table, *names[:end]), number)

    def of(self, *names: str) -> int | None:
        """The line of a table or key, from 1: `of("target", "kernels", "chips")`."""
        return self._places.get(names)


def _names(dotted: str) -> tuple[str, ...]:
    return tuple(word.strip("\"'") for word in re.findall(_KEY, dotted))


def line_of_error(message: str, text: str) -> tuple[int, str]:
    """The line, and the words, of what `tomllib` says of the text."""
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", message)
    if found is None:
        return 1, message
    return int(found[2] or len(text.splitlines())), f"{found[1]}."
