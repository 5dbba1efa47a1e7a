"""Reads the parts of ELF files that tests ask about, without a system's binutils."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MACHINES = {62: "x86_64", 183: "aarch64", 190: "cuda"}
TYPES = {1: "object", 2: "executable", 3: "shared"}  # 3 is a PIE, too
_NEEDED, _SONAME = 1, 14
_DYNAMIC_SECTION, _VERSIONS_NEEDED = 6, 0x6FFFFFFE
_SYMBOL_TABLE, _DYNAMIC_SYMBOLS = 2, 11
_UNDEFINED = 0


@dataclass(frozen=True)
class Section:
    name: str
    kind: int
    content: bytes
    link: int


@dataclass(frozen=True)
class Symbol:
    name: str
    binding: int  # 0 local, 1 global, 2 weak
    is_defined: bool
    visibility: int  # 0 default, 2 hidden

    @property
    def is_global(self) -> bool:
        """Whether other objects may refer to it."""
        return self.is_defined and self.binding != 0

    @property
    def is_weak(self) -> bool:
        return self.binding == 2


class Elf:
    """A 64-bit little-endian ELF file."""

    def __init__(self, source: Path | bytes) -> None:
        self.data = source if isinstance(source, bytes) else source.read_bytes()
        assert self.data[:6] == b"\x7fELF\x02\x01", "not a 64-bit little-endian ELF file"
        kind, machine = struct.unpack_from("<HH", self.data, 16)
        self.type = TYPES.get(kind, str(kind))
        self.machine = MACHINES.get(machine, str(machine))
        self.sections = self._read_sections()

    def _read_sections(self) -> list[Section]:
        (offset,) = struct.unpack_from("<Q", self.data, 40)
        size, count, names = struct.unpack_from("<HHH", self.data, 58)
        headers = [
            struct.unpack_from("<IIQQQQIIQQ", self.data, offset + i * size) for i in range(count)
        ]
        contents = [b"" if h[1] == 8 else self.data[h[4] : h[4] + h[5]] for h in headers]
        return [
            Section(_text(contents[names], header[0]), header[1], content, header[6])
            for header, content in zip(headers, contents, strict=True)
        ]

    def section(self, name: str) -> bytes | None:
        """The section's bytes; None where there is no such section."""
        return next((s.content for s in self.sections if s.name == name), None)

    @property
    def needed(self) -> list[str]:
        """The libraries that the dynamic linker must find."""
        return self._dynamic_strings(_NEEDED)

    @property
    def soname(self) -> str | None:
        return next(iter(self._dynamic_strings(_SONAME)), None)

    def _dynamic_strings(self, wanted: int) -> list[str]:
        found = []
        for section in self.sections:
            if section.kind == _DYNAMIC_SECTION:
                names = self.sections[section.link].content
                for tag, value in struct.iter_unpack("<qQ", section.content):
                    if tag == wanted:
                        found.append(_text(names, value))
        return found

    @property
    def versions_needed(self) -> dict[str, list[str]]:
        """The symbol versions that the file asks of each library: GLIBC_2.17, ..."""
        found: dict[str, list[str]] = {}
        for section in self.sections:
            if section.kind == _VERSIONS_NEEDED:
                names = self.sections[section.link].content
                found.update(_versions(section.content, names))
        return found

    @property
    def symbols(self) -> list[Symbol]:
        return self._symbols(_SYMBOL_TABLE)

    @property
    def dynamic_symbols(self) -> list[Symbol]:
        return self._symbols(_DYNAMIC_SYMBOLS)

    @property
    def exports(self) -> set[str]:
        """The names that a shared library defines for others."""
        return {s.name for s in self.dynamic_symbols if s.is_global}

    def _symbols(self, kind: int) -> list[Symbol]:
        found = []
        for section in self.sections:
            if section.kind == kind:
                names = self.sections[section.link].content
                for name, info, other, index, _, _ in struct.iter_unpack(
                    "<IBBHQQ", section.content
                ):
                    defined = index != _UNDEFINED
                    found.append(Symbol(_text(names, name), info >> 4, defined, other & 3))
        return found[1:]


def _text(names: bytes, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode()


def _versions(content: bytes, names: bytes) -> Iterator[tuple[str, list[str]]]:
    place = 0
    while True:
        _, count, file, first, following = struct.unpack_from("<HHIII", content, place)
        versions = []
        at = place + first
        for _ in range(count):
            _, _, _, name, step = struct.unpack_from("<IHHII", content, at)
            versions.append(_text(names, name))
            at += step
        yield _text(names, file), versions
        if following == 0:
            return
        place += following


def archive_members(archive: bytes) -> dict[str, bytes]:
    """The members of a static library (`ar`) with their contents, without its symbol table."""
    assert archive.startswith(b"!<arch>\n")
    members: dict[str, bytes] = {}
    long_names = b""
    at = 8
    while at < len(archive):
        header = archive[at : at + 60]
        name, size = header[:16].decode().rstrip(), int(header[48:58])
        content = archive[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
        if name == "//":
            long_names = content
        elif name != "/":
            if name.startswith("/"):
                start = int(name[1:])
                name = long_names[start : long_names.index(b"\n", start)].decode()
            members[name.rstrip("/")] = content
    return members
