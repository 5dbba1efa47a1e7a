"""`Place`: a place in a source file."""

from __future__ import annotations

from msgspec import Struct


class Place(Struct, frozen=True):
    """A place in a source file. Line and column count from 1, the column in bytes of UTF-8."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"
