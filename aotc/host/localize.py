"""Makes most of the global symbols of an ELF object local.

A static library is one relocatable object. Symbols that its parts share are hidden, but global, so
that two such libraries in one program would define the same names twice. Here these symbols become
local. The file is changed in place: it keeps its size, and each section its offset.

Sources: those of `elf`; for LLVM's section types, the page "LLVM Extensions" of its manual.
"""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterable, Sequence, Set

from aotc.errors import InternalError
from aotc.host.elf import Elf, damaged
from aotc.images.elf_format import (
    ET_REL,
    SHN_UNDEF,
    SHT_SYMTAB,
    SHT_SYMTAB_SHNDX,
    SYMBOL,
    WORD,
)

_SHT_GROUP = 17
_SHT_LLVM_ADDRSIG = 0x6FFF4C03
_SHT_LLVM_CALL_GRAPH_PROFILE = 0x6FFF4C09
# SHT_REL and SHT_RELA, and the size of a relocation. The symbol is the upper half of r_info.
_RELOCATION_SIZES = {9: 16, 4: 24}
_RELOCATION_SYMBOL_AT = 12
_GRP_COMDAT = 1
# SHN_COMMON and SHN_X86_64_LCOMMON.
_SHN_COMMONS = (0xFFF2, 0xFF02)


def localize(data: bytearray | mmap.mmap, keep: Collection[str]) -> None:
    """Makes the symbols local that the relocatable object `data` defines, except `keep`.

    `data` is changed in place: it may be a mapped file of gigabytes. Undefined symbols are not
    changed, nor are common symbols, which the linker merges by name. Raises InternalError if
    `data` is not a 64-bit little-endian relocatable object, is damaged, or refers to symbols in an
    unknown way.
    """
    elf = Elf(data)
    if elf.type != ET_REL:
        raise InternalError(
            "Symbols can be made local in a relocatable ELF object only (type 1); "
            f"found one of type {elf.type}."
        )
    tables = elf.find(SHT_SYMTAB)
    if not tables:
        return
    if len(tables) > 1:
        raise damaged("it has more than one symbol table")
    kept = frozenset(keep)
    elsewhere = (SHN_UNDEF, *_SHN_COMMONS)
    chosen = {
        index
        for index, symbol, name in elf.global_symbols(tables[0])
        if symbol.section not in elsewhere and name not in kept
    }
    if chosen:
        _make_local(elf, data, tables[0], chosen)


def _make_local(elf: Elf, out: bytearray | mmap.mmap, table: int, chosen: Set[int]) -> None:
    """Makes the symbols `chosen` of the section `table` local, in `out`, the file of `elf`."""
    symbols = elf.symbols(table)
    touched = elf.sections_of(table, symbols, chosen)
    for index in chosen:
        symbols[index] = symbols[index].as_local()
    # Local symbols must come first. Their order is kept, as a source file's symbol (STT_FILE)
    # precedes the other symbols of the file. Entry 0 is the null symbol.
    order = [0, *sorted(range(1, len(symbols)), key=lambda index: not symbols[index].is_local)]
    local_count = 1 + sum(symbol.is_local for symbol in symbols[1:])
    new_index = [0] * len(order)
    for new, old in enumerate(order):
        new_index[old] = new

    for place, old in zip(elf.entries(table, SYMBOL.size), order, strict=True):
        SYMBOL.pack_into(out, place, *symbols[old])
    elf.put_section(out, table, elf.sections[table]._replace(info=local_count))
    # Every section that names symbols of the table is linked to it.
    for index, section in enumerate(elf.sections):
        if section.link != table:
            continue
        if size := _RELOCATION_SIZES.get(section.type):
            places = elf.entries(index, size)
            _renumber(out, (place + _RELOCATION_SYMBOL_AT for place in places), new_index)
        elif section.type == SHT_SYMTAB_SHNDX:
            _reorder(elf, out, index, order)
        elif section.type == _SHT_GROUP:
            _rewrite_group(elf, out, index, new_index, touched, chosen)
        elif section.type == _SHT_LLVM_CALL_GRAPH_PROFILE and section.entry_size == 8:
            pass  # since LLVM 13 it has only weights; relocations refer to the functions
        elif section.type == _SHT_LLVM_ADDRSIG:
            # It has bare symbol indices, for --icf=safe. Without a link they are void. `ld.lld -r`
            # leaves it like that, too; linkers then take every symbol as address-significant.
            elf.put_section(out, index, section._replace(link=0))
        else:
            raise InternalError(
                "Cannot make symbols of an ELF object local: its section "
                f"{index} may refer to them, whose type {section.type:#x} is not known."
            )


def _reorder(elf: Elf, out: bytearray | mmap.mmap, index: int, order: Sequence[int]) -> None:
    """Puts the words of a section, one for each symbol, into the new order of the symbols."""
    words = elf.words(index)
    if len(words) != len(order):
        raise damaged(f"section {index} is not as long as the symbol table")
    for place, old in zip(elf.entries(index, WORD.size), order, strict=True):
        WORD.pack_into(out, place, words[old])


def _renumber(out: bytearray | mmap.mmap, places: Iterable[int], new_index: Sequence[int]) -> None:
    """Replaces the symbol indices at `places`."""
    for place in places:
        (old,) = WORD.unpack_from(out, place)
        if old >= len(new_index):
            raise damaged(f"there is no symbol {old}, which byte {place} names")
        WORD.pack_into(out, place, new_index[old])


def _rewrite_group(
    elf: Elf,
    out: bytearray | mmap.mmap,
    index: int,
    new_index: Sequence[int],
    touched: Set[int],
    chosen: Set[int],
) -> None:
    """Renumbers the signature of a group, and makes it an ordinary group if necessary.

    Of several COMDAT groups with the same signature, linkers keep one; they compare the signatures'
    names, whatever the binding is. A group with symbols that are local now must not be dropped for
    another library's group: local references to it would have no target.
    """
    section = elf.sections[index]
    if section.info >= len(new_index):
        raise damaged(f"there is no symbol {section.info}, which section {index} names")
    elf.put_section(out, index, section._replace(info=new_index[section.info]))
    flags, *members = elf.words(index) or [0]
    if section.info in chosen or any(member in touched for member in members):
        WORD.pack_into(out, section.offset, flags & ~_GRP_COMDAT)
