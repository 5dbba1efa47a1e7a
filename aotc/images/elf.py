"""Reader for untrusted ELF files, which may be damaged: sections, symbols, notes, dependencies.

`aotc.host.elf` reads files that aotc's own tools wrote, in which damage is a bug of aotc. This one
reads files that users name, so everything is bounded. It also says what the programs that aotc
links need. `elf_format` names the sources.
"""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Iterator
from typing import NamedTuple

from aotc.errors import InputError
from aotc.images.elf_format import (
    DT_NEEDED,
    DYNAMIC,
    ET_REL,
    FILE_HEADER,
    SECTION_HEADER,
    SHN_UNDEF,
    SHN_XINDEX,
    SHT_DYNAMIC,
    SHT_DYNSYM,
    SHT_GNU_VERNEED,
    SHT_SYMTAB,
    SYMBOL,
    VERNAUX,
    VERNEED,
    Section,
    Symbol,
)
from aotc.images.view import View

MAGIC = b"\x7fELF"

SHT_NOBITS = 8
_SHT_NOTE = 7
_DT_SONAME, _DT_FLAGS_1 = 14, 0x6FFFFFFB
_DF_1_PIE = 0x08000000
# The file header after e_ident.
_AFTER_IDENTIFICATION = struct.Struct(FILE_HEADER.format.replace("16s", ""))
_NOTE = struct.Struct("<III")

# More than any compiler emits, and a bound for the memory that a file may cost.
_MOST_SECTIONS = 1 << 18
_MOST_SYMBOLS = 1 << 22
_MOST_NOTES = 1 << 12
_MOST_DYNAMIC = 1 << 14
_LONGEST_NOTE = 1 << 26
_LONGEST_OWNER = 256
# Names may overlap: this bounds the total size of all names that are read.
_MOST_NAME_BYTES = 1 << 26


class Note(NamedTuple):
    """An entry of a note section: its owner, its type and its content."""

    owner: str
    type: int
    content: bytes


class Dynamic(NamedTuple):
    """DT_NEEDED, DT_SONAME, and whether the file is a position-independent executable."""

    needed: tuple[str, ...]
    soname: str | None
    is_program: bool


class ElfFile:
    """A 64-bit little-endian ELF file. Raises InputError for other files and for damaged ones."""

    def __init__(self, view: View) -> None:
        self.view = view
        if not view.starts_with(MAGIC):
            raise view.damaged("it does not begin as an ELF file")
        header = view.read(0, 16, "the ELF header")
        if header[4:6] != b"\x02\x01":
            bits = 64 if header[4] == 2 else 32
            end = "little" if header[5] == 1 else "big"
            raise InputError(
                f"{view.name} is an ELF file of {bits} bits, {end}-endian: aotc reads those of 64 "
                "bits, little-endian."
            )
        (self.type, self.machine, _, _, _, headers, self.flags, *_, size, count, names) = (
            view.unpack(_AFTER_IDENTIFICATION, len(header), "the ELF header")
        )
        self.abi_version = header[8]
        self.sections: list[Section] = []
        self._names = names
        self._name_bytes = _MOST_NAME_BYTES
        if headers == 0:
            return  # section headers are optional in linked files
        if size != SECTION_HEADER.size:
            raise view.damaged(f"its section headers have {size} bytes, not {SECTION_HEADER.size}")
        if count == 0 or names == SHN_XINDEX:
            first = Section._make(view.unpack(SECTION_HEADER, headers, "the first section header"))
            # If the values exceed e_shnum and e_shstrndx, the first section header has them.
            count = count or first.size
            self._names = first.link if names == SHN_XINDEX else names
        if count > _MOST_SECTIONS:
            raise view.damaged(f"it would have {count} sections")
        table = view.read(headers, count * size, "the section headers")
        self.sections = [Section._make(fields) for fields in SECTION_HEADER.iter_unpack(table)]

    @functools.cached_property
    def names(self) -> list[str]:
        """The sections' names, in order."""
        if not self.sections:
            return []
        strings = self.content(self._names, "the sections' names")
        return [self._string(strings, s.name, "a section's name") for s in self.sections]

    def _string(self, strings: View, place: int, what: str) -> str:
        text = strings.string(place, what)
        self._name_bytes -= len(text)
        if self._name_bytes < 0:
            raise self.view.damaged(f"its names would have more than {_MOST_NAME_BYTES} bytes")
        return text

    def content(self, index: int, what: str) -> View:
        """The bytes of a section in the file; empty if it has none, such as .bss."""
        if not 0 <= index < len(self.sections):
            raise self.view.damaged(f"{what} would be section {index} of {len(self.sections)}")
        section = self.sections[index]
        size = 0 if section.type in (0, SHT_NOBITS) else section.size
        return self.view.part(section.offset if size else 0, size, what)

    def named(self, name: str) -> View | None:
        """The content of the first section of that name."""
        try:
            return self.content(self.names.index(name), f"section {name}")
        except ValueError:
            return None

    def find(self, type: int) -> list[int]:
        return [index for index, section in enumerate(self.sections) if section.type == type]

    def symbols(self) -> Iterator[tuple[Symbol, str]]:
        """The symbols from index 1; in a linked file, those of the dynamic symbol table."""
        wanted = (SHT_SYMTAB,) if self.type == ET_REL else (SHT_DYNSYM, SHT_SYMTAB)
        return self._symbols_of(next((i for type in wanted for i in self.find(type)), None))

    def symbol_table(self) -> Iterator[tuple[Symbol, str]]:
        """The symbols of .symtab, from index 1."""
        return self._symbols_of(next(iter(self.find(SHT_SYMTAB)), None))

    def _symbols_of(self, index: int | None) -> Iterator[tuple[Symbol, str]]:
        if index is None:
            return
        table = self.content(index, "the symbol table")
        strings = self.content(self.sections[index].link, "the symbols' names")
        count = table.size // SYMBOL.size
        if count > _MOST_SYMBOLS:
            raise self.view.damaged(f"it would have {count} symbols")
        for number in range(1, count):
            fields = table.unpack(SYMBOL, number * SYMBOL.size, "a symbol")
            symbol = Symbol._make(fields)
            has_name = symbol.name != 0
            yield symbol, self._string(strings, symbol.name, "a symbol's name") if has_name else ""

    def defined(self) -> Iterator[str]:
        """The names of the symbols that other files may refer to."""
        for symbol, name in self.symbols():
            if not symbol.is_local and symbol.section != SHN_UNDEF:
                yield name

    def notes(self) -> Iterator[Note]:
        left = _MOST_NOTES
        for index in self.find(_SHT_NOTE):
            section = self.content(index, "a note section")
            # The gABI says 8 in 64-bit files; in practice it is 4, unless the section is aligned
            # to 8.
            unit = 8 if self.sections[index].alignment == 8 else 4
            at = 0
            while at + _NOTE.size <= section.size:
                left -= 1
                if left < 0:
                    raise self.view.damaged(f"it would have more than {_MOST_NOTES} notes")
                names, size, type = section.unpack(_NOTE, at, "a note")
                if names > _LONGEST_OWNER or size > _LONGEST_NOTE:
                    raise self.view.damaged(f"a note would have {names} + {size} bytes")
                begin = at + _NOTE.size
                owner = section.read(begin, names, "a note's owner").split(b"\0")[0]
                begin = _aligned(begin + names, unit)
                content = section.read(begin, size, "a note's content")
                yield Note(owner.decode("utf-8", "backslashreplace"), type, content)
                at = _aligned(begin + size, unit)

    @functools.cached_property
    def dynamic(self) -> Dynamic:
        """The information for the dynamic linker; empty for a file without it."""
        needed: list[str] = []
        soname: str | None = None
        flags = 0
        for index in self.find(SHT_DYNAMIC)[:1]:
            section = self.content(index, "the dynamic section")
            strings = self.content(self.sections[index].link, "the dynamic section's names")
            for at in range(0, section.size - DYNAMIC.size + 1, DYNAMIC.size)[:_MOST_DYNAMIC]:
                tag, value = section.unpack(DYNAMIC, at, "a dynamic entry")
                if tag == 0:
                    break
                if tag == DT_NEEDED:
                    needed.append(self._string(strings, value, "a needed library's name"))
                elif tag == _DT_SONAME:
                    soname = self._string(strings, value, "the library's name")
                elif tag == _DT_FLAGS_1:
                    flags = value
        return Dynamic(tuple(needed), soname, bool(flags & _DF_1_PIE))

    def versions_needed(self) -> set[str]:
        """The symbol versions that the file requires: GLIBC_2.17, ..."""
        found: set[str] = set()
        left = _MOST_DYNAMIC
        for index in self.find(SHT_GNU_VERNEED)[:1]:
            section = self.content(index, "the needed versions")
            strings = self.content(self.sections[index].link, "the versions' names")
            at = 0
            for _ in range(min(self.sections[index].info, left)):
                _, count, _, first, following = section.unpack(VERNEED, at, "a needed version")
                aux = at + first
                for _ in range(count):
                    left -= 1
                    if left < 0:
                        raise self.view.damaged("it would need too many versions")
                    _, _, _, name, step = section.unpack(VERNAUX, aux, "a needed version")
                    found.add(self._string(strings, name, "a version's name"))
                    aux += step
                    if step == 0:
                        break
                at += following
                if following == 0:
                    break
        return found

    def comments(self) -> tuple[str, ...]:
        """The identification strings of compilers and linkers (.comment)."""
        section = self.named(".comment")
        if section is None:
            return ()
        texts = section.read(0, min(section.size, 1 << 14), ".comment").split(b"\0")
        decoded = [text.decode("utf-8", "backslashreplace") for text in texts if text]
        return tuple(dict.fromkeys(itertools.islice(decoded, 32)))


def _aligned(offset: int, unit: int) -> int:
    return offset + -offset % unit
