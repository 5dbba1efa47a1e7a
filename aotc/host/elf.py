"""Reader of ELF files that aotc's own tools wrote, in which damage is a bug: symbols and sections.

Sources: the System V gABI (https://gabi.xinuos.com: ELF Header, Section Header Table, Section
Groups, Symbol Table, Relocation, Dynamic Section); the psABIs of x86-64, which adds the large
common section, and of AArch64, which adds bits beside the visibility in st_other. Field names in
comments are theirs.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from aotc.errors import InputError, InternalError
from aotc.images.elf_format import (
    ET_REL,
    FILE_HEADER,
    IDENTIFICATION,
    SECTION_HEADER,
    SHN_UNDEF,
    SHN_XINDEX,
    SHT_DYNSYM,
    SHT_SYMTAB,
    SHT_SYMTAB_SHNDX,
    SYMBOL,
    WORD,
    Section,
    Symbol,
)

_SHT_LLVM_DEPENDENT_LIBRARIES = 0x6FFF4C04

# A file's content, in memory or mapped into memory.
Data = bytes | bytearray | mmap.mmap


@contextlib.contextmanager
def mapped(place: Path, *, writable: bool = False) -> Iterator[mmap.mmap]:
    """The content of a file, mapped into memory, so that only the parts that are used are read."""
    access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
    with (
        place.open("r+b" if writable else "rb") as file,
        mmap.mmap(file.fileno(), 0, access=access) as data,
    ):
        yield data


def global_symbols(data: Data) -> dict[str, bool]:
    """The symbols of the ELF file `data` that are not local, each with whether it is defined.

    For a linked file, these are the symbols of the dynamic symbol table, if it has one. A common
    symbol counts as defined. Raises InternalError if `data` is not a 64-bit little-endian ELF file,
    or is damaged.
    """
    elf = Elf(data)
    wanted = (SHT_SYMTAB,) if elf.type == ET_REL else (SHT_DYNSYM, SHT_SYMTAB)
    tables = [index for type in wanted for index in elf.find(type)]
    found: dict[str, bool] = {}
    if tables:
        for _, symbol, name in elf.global_symbols(tables[0]):
            # With symbol versions, a name may occur twice.
            found[name] = found.get(name, False) or symbol.section != SHN_UNDEF
    return found


def check_named_libraries(place: Path) -> None:
    """Raises InputError for an object that names libraries to be linked with it, as LLVM's linker
    would search them on this machine."""
    with mapped(place) as data:
        elf = Elf(data)
        sections = [elf.sections[index] for index in elf.find(_SHT_LLVM_DEPENDENT_LIBRARIES)]
        named = [data[one.offset : one.offset + one.size].split(b"\0") for one in sections]
    libraries = ", ".join(
        name.decode(errors="replace") for names in named for name in names if name
    )
    if libraries:
        raise InputError(
            "The host code names libraries to be linked with it (llvm.dependent_libraries, or a "
            f"section of that kind): {libraries}.",
            hint="--allow-file-directives is for a module that you trust.",
        )


class Elf:
    """An ELF file: its sections and their content."""

    def __init__(self, data: Data) -> None:
        if len(data) < FILE_HEADER.size or data[: len(IDENTIFICATION)] != IDENTIFICATION:
            raise InternalError(
                "Expected a 64-bit little-endian ELF file, found "
                f"{len(data)} bytes that begin with '{data[:7].hex(' ')}'."
            )
        self.data = data
        header = FILE_HEADER.unpack_from(data)
        self.type: int = header[1]
        self._headers: int = header[6]
        size, count = header[11:13]
        self.sections: list[Section] = []
        if self._headers == 0:
            return  # a linked file need not have section headers
        if size != SECTION_HEADER.size:
            raise damaged(f"its section headers have {size} bytes, not {SECTION_HEADER.size}")
        if count == 0:
            # The number does not fit into e_shnum: it is in the first header.
            self._check(self._headers, size)
            first = Section._make(SECTION_HEADER.unpack_from(data, self._headers))
            count = first.size
        self._check(self._headers, count * size)
        headers = data[self._headers : self._headers + count * size]
        self.sections = [Section._make(fields) for fields in SECTION_HEADER.iter_unpack(headers)]

    def find(self, type: int) -> list[int]:
        """The indices of the sections of a type."""
        return [index for index, section in enumerate(self.sections) if section.type == type]

    def put_section(self, out: bytearray | mmap.mmap, index: int, section: Section) -> None:
        """Writes a section header into `out`, a copy of this file."""
        SECTION_HEADER.pack_into(out, self._headers + index * SECTION_HEADER.size, *section)

    def entries(self, index: int, size: int) -> range:
        """The offset of each entry of a section. An entry has `size` bytes."""
        section = self.sections[index]
        self._check(section.offset, section.size)
        if section.size % size != 0:
            raise damaged(f"section {index} does not end with a whole entry")
        return range(section.offset, section.offset + section.size, size)

    def words(self, index: int) -> list[int]:
        """The words of a section of 32-bit words."""
        return [WORD.unpack_from(self.data, place)[0] for place in self.entries(index, 4)]

    def symbols(self, table: int) -> list[Symbol]:
        places = self.entries(table, SYMBOL.size)
        return [Symbol._make(SYMBOL.unpack_from(self.data, place)) for place in places]

    def global_symbols(self, table: int) -> Iterator[tuple[int, Symbol, str]]:
        """The symbols that are not local, as (index, symbol, name)."""
        link = self.sections[table].link
        if link >= len(self.sections):
            raise damaged("its symbols have no names")
        strings = self.entries(link, 1)
        for index, symbol in enumerate(self.symbols(table)):
            if index == 0 or symbol.is_local:
                continue
            start = strings.start + symbol.name
            end = self.data.find(b"\0", start, strings.stop)
            if end < 0:
                raise damaged(f"the name of symbol {index} has no end")
            yield index, symbol, self.data[start:end].decode("utf-8", "surrogateescape")

    def string(self, table: int, start: int) -> str:
        """The string that begins at `start` in the section `table`."""
        if table >= len(self.sections):
            raise damaged(f"there is no section {table}")
        strings = self.entries(table, 1)
        begin = strings.start + start
        end = self.data.find(b"\0", begin, strings.stop)
        if end < 0:
            raise damaged(f"the string at {start} has no end")
        return self.data[begin:end].decode("utf-8", "surrogateescape")

    def sections_of(
        self, table: int, symbols: Sequence[Symbol], indices: Iterable[int]
    ) -> set[int]:
        """The sections that define the symbols with these indices."""
        extended = [i for i in self.find(SHT_SYMTAB_SHNDX) if self.sections[i].link == table]
        words = self.words(extended[0]) if extended else []
        found = set()
        for index in indices:
            section = symbols[index].section
            if section == SHN_XINDEX:  # too large for st_shndx
                if index >= len(words):
                    raise damaged(f"nothing says in which section symbol {index} is")
                section = words[index]
            found.add(section)
        return found

    def _check(self, start: int, size: int) -> None:
        if start + size > len(self.data):
            raise damaged(f"it has {len(self.data)} bytes, but a part ends at {start + size}")


def damaged(problem: str) -> InternalError:
    return InternalError(f"The ELF file is damaged: {problem}.")
