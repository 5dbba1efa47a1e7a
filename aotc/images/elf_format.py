"""The layout of ELF files: headers, sections and symbols.

Sources: the System V gABI (https://gabi.xinuos.com), and the Linux Standard Base for symbol
versions. Field names in comments are theirs.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
WORD = struct.Struct("<I")
DYNAMIC = struct.Struct("<qQ")
VERNEED = struct.Struct("<HHIII")
VERNAUX = struct.Struct("<IHHII")

# The magic, ELFCLASS64, ELFDATA2LSB, EV_CURRENT.
IDENTIFICATION = b"\x7fELF\x02\x01\x01"
ET_REL = 1

SHT_DYNAMIC = 6
SHT_GNU_VERNEED = 0x6FFFFFFE
DT_NEEDED = 1
SHT_SYMTAB = 2
SHT_DYNSYM = 11
SHT_SYMTAB_SHNDX = 18

SHN_UNDEF = 0
SHN_XINDEX = 0xFFFF
_STB_LOCAL = 0
_STV_MASK = 3  # the visibility in st_other; 0 is STV_DEFAULT


class Section(NamedTuple):
    """A section header, field by field."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class Symbol(NamedTuple):
    """An entry of a symbol table, field by field."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int

    @property
    def is_local(self) -> bool:
        return self.info >> 4 == _STB_LOCAL

    def as_local(self) -> Symbol:
        """The symbol with STB_LOCAL and STV_DEFAULT: some tools warn of a hidden local symbol."""
        return self._replace(info=_STB_LOCAL << 4 | self.info & 0xF, other=self.other & ~_STV_MASK)
