"""Writer of a relocatable ELF object that defines variables, each in a section of its own.

Sources: the System V gABI (see `aotc.host.elf`), and the psABI of x86-64 for `.lrodata`, `.ldata`
and SHF_X86_64_LARGE: code addresses the other sections by 32 bits, so that gigabytes must not be
between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO, NamedTuple

from aotc.images.elf_format import (
    ET_REL,
    FILE_HEADER,
    IDENTIFICATION,
    SECTION_HEADER,
    SHT_SYMTAB,
    SYMBOL,
)

_MACHINES = {"x86_64": 62, "aarch64": 183}  # EM_X86_64, EM_AARCH64
_SHT_PROGBITS, _SHT_STRTAB, _SHT_NOBITS = 1, 3, 8
_SHF_WRITE, _SHF_ALLOC = 1, 2
_STB_GLOBAL, _STT_OBJECT, _STV_HIDDEN = 1, 1, 2


class Variable(NamedTuple):
    """A global, hidden symbol, and its bytes: zeros, or those that `pieces` returns."""

    symbol: str
    size: int
    alignment: int
    is_writable: bool
    is_zero: bool
    pieces: Callable[[], Iterable[bytes | memoryview]]


class _Section(NamedTuple):
    name: str
    type: int
    flags: int = 0
    offset: int = 0
    size: int = 0
    link: int = 0
    info: int = 0
    alignment: int = 1
    entry_size: int = 0


def write_object(out: BinaryIO, machine: str, variables: Sequence[Variable]) -> None:
    """Writes the object for an architecture (`x86_64`, `aarch64`) to `out`, from its start."""
    sections = [_Section("", 0)]
    out.write(bytes(FILE_HEADER.size))
    for variable in variables:
        offset = _align(out, variable.alignment)
        if not variable.is_zero:
            out.writelines(variable.pieces())
        sections.append(_section_of(variable, offset))
    strings, symbols = _symbols(variables)
    # Without this section, linkers assume that the code needs an executable stack.
    sections.append(_Section(".note.GNU-stack", _SHT_PROGBITS, offset=out.tell()))
    link = len(sections) + 1
    symbol_table = _Section(
        ".symtab", SHT_SYMTAB, link=link, info=1, alignment=8, entry_size=SYMBOL.size
    )
    for section, content in (
        (symbol_table, symbols),
        (_Section(".strtab", _SHT_STRTAB), strings),
    ):
        offset = _align(out, section.alignment)
        out.write(content)
        sections.append(section._replace(offset=offset, size=len(content)))
    sections.append(_Section(".shstrtab", _SHT_STRTAB))
    names, starts = _string_table([section.name for section in sections])
    sections[-1] = sections[-1]._replace(offset=out.tell(), size=len(names))
    out.write(names)
    headers = _align(out, 8)
    for start, section in zip(starts, sections, strict=True):
        out.write(
            SECTION_HEADER.pack(
                start,
                section.type,
                section.flags,
                0,
                section.offset,
                section.size,
                section.link,
                section.info,
                section.alignment if section.type else 0,
                section.entry_size,
            )
        )
    out.seek(0)
    out.write(_file_header(_MACHINES[machine], headers, len(sections)))


def _section_of(variable: Variable, offset: int) -> _Section:
    flags = _SHF_ALLOC | (_SHF_WRITE if variable.is_writable or variable.is_zero else 0)
    kind = "data" if variable.is_writable else "rodata"
    type_ = _SHT_PROGBITS
    if variable.is_zero:
        # It has no bytes in the file. Linkers place such memory in writable segments.
        kind, type_ = "bss", _SHT_NOBITS
    return _Section(
        f".{kind}.{variable.symbol}",
        type_,
        flags,
        offset,
        variable.size,
        alignment=variable.alignment,
    )


def _symbols(variables: Sequence[Variable]) -> tuple[bytes, bytes]:
    """The string table and the symbol table. The section of variable i is section i + 1."""
    strings, starts = _string_table(["", *(variable.symbol for variable in variables)])
    info = _STB_GLOBAL << 4 | _STT_OBJECT
    table = bytearray(SYMBOL.size)
    for number, (start, variable) in enumerate(zip(starts[1:], variables, strict=True), 1):
        table += SYMBOL.pack(start, info, _STV_HIDDEN, number, 0, variable.size)
    return strings, bytes(table)


def _string_table(names: Sequence[str]) -> tuple[bytes, list[int]]:
    table, starts = bytearray(), []
    for name in names:
        starts.append(len(table))
        table += name.encode() + b"\0"
    return bytes(table), starts


def _align(out: BinaryIO, alignment: int) -> int:
    """Pads `out` to a multiple of `alignment`; returns the new offset."""
    out.write(bytes(-out.tell() % alignment))
    return out.tell()


def _file_header(machine: int, headers: int, sections: int) -> bytes:
    return FILE_HEADER.pack(
        IDENTIFICATION.ljust(16, b"\0"),
        ET_REL,
        machine,
        1,  # EV_CURRENT
        0,
        0,
        headers,
        0,
        FILE_HEADER.size,
        0,
        0,
        SECTION_HEADER.size,
        sections,
        sections - 1,
    )
