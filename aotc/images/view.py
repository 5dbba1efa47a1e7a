"""`View`: bounds-checked access to a part of a file, or to decompressed bytes.

All readers here are based on it. Offsets, sizes and counts in a file are checked against the actual
size before they are used, and a loop whose length the file determines has a limit.
"""

from __future__ import annotations

import mmap
import struct

from aotc.errors import InputError

Data = bytes | mmap.mmap

# Longer names are not accepted: C++ names reach tens of thousands of bytes.
LONGEST_NAME = 1 << 16


def printable(line: str) -> str:
    """The line with unprintable characters escaped."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def damaged(name: str, problem: str) -> InputError:
    return InputError(f"{name} is damaged: {problem}.")


class View:
    """`size` bytes of `data` from `start` on; `name` identifies them in messages.

    Offsets are relative to the view's start. Access outside the view raises InputError.
    """

    __slots__ = ("data", "name", "size", "start")

    def __init__(self, data: Data, name: str, start: int = 0, size: int | None = None) -> None:
        self.data = data
        self.name = name
        self.start = start
        self.size = len(data) - start if size is None else size

    def damaged(self, problem: str) -> InputError:
        return damaged(self.name, problem)

    def check(self, offset: int, size: int, what: str) -> None:
        if offset < 0 or size < 0 or offset + size > self.size:
            raise self.damaged(f"{what} would be bytes {offset} to {offset + size} of {self.size}")

    def part(self, offset: int, size: int, what: str, *, name: str | None = None) -> View:
        """The bytes of `what`, as a separate view."""
        self.check(offset, size, what)
        return View(self.data, name or self.name, self.start + offset, size)

    def read(self, offset: int, size: int, what: str) -> bytes:
        self.check(offset, size, what)
        return self.data[self.start + offset : self.start + offset + size]

    def all(self) -> bytes:
        return self.data[self.start : self.start + self.size]

    def starts_with(self, magic: bytes, offset: int = 0) -> bool:
        if offset + len(magic) > self.size:
            return False
        start = self.start + offset
        return self.data[start : start + len(magic)] == magic

    def unpack(self, layout: struct.Struct, offset: int, what: str) -> tuple[int, ...]:
        self.check(offset, layout.size, what)
        return layout.unpack_from(self.data, self.start + offset)

    def find(self, wanted: bytes, offset: int = 0) -> int:
        """The first position of `wanted` at or after `offset`; -1 if there is none."""
        found = self.data.find(wanted, self.start + offset, self.start + self.size)
        return found - self.start if found >= 0 else -1

    def string(self, offset: int, what: str) -> str:
        """The bytes up to the next NUL, as text."""
        self.check(offset, 1, what)
        begin = self.start + offset
        end = self.data.find(b"\0", begin, min(self.start + self.size, begin + LONGEST_NAME))
        if end < 0:
            raise self.damaged(f"{what} at byte {offset} has no end")
        return self.data[begin:end].decode("utf-8", "backslashreplace")
