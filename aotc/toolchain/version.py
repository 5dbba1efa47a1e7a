"""`Version`: a tool's version number, ordered."""

from __future__ import annotations

import re

from msgspec import Struct


class Version(Struct, frozen=True, order=True):
    """Three numbers. A suffix (`24.0.0git`) is dropped: it is not part of the order."""

    major: int
    minor: int = 0
    patch: int = 0

    @staticmethod
    def parse(text: str) -> Version:
        """The first dotted number in `text`: a version such as `24.0.0git`, or the output of
        `--version`."""
        found = re.search(r"\d{1,9}(?:\.\d{1,9}){1,2}", text) or re.search(r"\d{1,9}", text)
        if found is None:
            raise ValueError(f"no version number in {text!r}")
        return Version(*(int(number) for number in found[0].split(".")))

    def __str__(self) -> str:
        if self == UNKNOWN:
            return "unknown"
        return f"{self.major}.{self.minor}.{self.patch}"


# The version of a file that does not state one. It precedes all others.
UNKNOWN = Version(0)
