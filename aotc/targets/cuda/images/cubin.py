"""CUDA ELF files (cubins): the chip, the tool that made them, and the resources of each kernel.

NVIDIA does not document the attributes of `.nv.info`. Their names are those that `cuobjdump -elf`
prints; the values were compared with its output. The flags of the ELF header are LLVM's
(llvm/BinaryFormat/ELF.h, EF_CUDA_*): the chip's number is their first byte up to ABI version 7, and
their second byte from version 8 (CUDA 13) on.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator

from msgspec import Struct

from aotc.images.elf import ElfFile
from aotc.images.view import View

EM_CUDA = 190  # e_machine


_ABI_WITH_NEW_FLAGS = 8
_ACCELERATORS, _ACCELERATORS_BEFORE = 0x8, 0x800  # EF_CUDA_ACCELERATORS, .._V1: an "a" chip
_FIRST_OWN = 90  # for chips before, the bit had another meaning
_STO_CUDA_ENTRY = 0x10  # in st_other: a kernel
_STT_FUNC = 2
_RESERVED_SHARED = 1024

# Formats of attributes: no value, a byte, a half word, a value with a size.
_NVAL, _BVAL, _HVAL, _SVAL = 1, 2, 3, 4
_MAX_THREADS, _REQNTID, _FRAME_SIZE, _MIN_STACK_SIZE = 0x05, 0x10, 0x11, 0x12
_CBANK_PARAM_SIZE, _REGCOUNT, _NUM_BARRIERS = 0x19, 0x2F, 0x4C
_ATTRIBUTE = struct.Struct("<BBH")
_PAIR = struct.Struct("<II")
_BLOCK = struct.Struct("<III")
_MOST_ATTRIBUTES = 1 << 20
_MOST_KERNELS = 1 << 17
# The content of .note.nv.tkinfo: version, and offsets into the strings after it: -, the tool, its
# version, its branch, its arguments.
_TKINFO = struct.Struct("<IIIIII")
_TKINFO_TYPE = 2000


class CubinKernel(Struct, frozen=True):
    """The resources of a kernel. Sizes are in bytes, and None if the file does not have them.

    `index` is the symbol's index, for nvdisasm. `stack_bytes` is per thread, `shared_bytes` per
    block.
    """

    name: str
    index: int
    registers: int | None
    shared_bytes: int | None
    stack_bytes: int | None
    parameter_bytes: int | None
    code_bytes: int | None
    barriers: int | None
    max_threads: int | None
    required_block: tuple[int, int, int] | None


class Cubin(Struct, frozen=True):
    """Device code for `chip` (sm_90a). `made_by` is a tool (`ptxas 13.5.37`), if it is known."""

    chip: str
    made_by: str | None
    kernels: tuple[CubinKernel, ...]


def read_cubin(view: View) -> Cubin:
    """Reads a cubin. Raises InputError if it is not a cubin, or is damaged."""
    elf = ElfFile(view)
    if elf.machine != EM_CUDA:
        raise view.damaged(f"it is an ELF file for the machine {elf.machine}, not for CUDA")
    made_by, architecture = _tool(elf)
    return Cubin(_chip(elf, architecture), made_by, tuple(_kernels(elf)))


def _chip(elf: ElfFile, architecture: str | None) -> str:
    is_new = elf.abi_version >= _ABI_WITH_NEW_FLAGS
    number = elf.flags >> 8 & 0xFF if is_new else elf.flags & 0xFF
    # From ABI 8 on, the flags do not distinguish sm_90a from sm_90. The assembler's arguments do.
    named = re.fullmatch(r"sm_(\d+)[a-z]?", architecture or "")
    if named is not None and int(named[1]) == number:
        return named[0]
    is_own = elf.flags & (_ACCELERATORS if is_new else _ACCELERATORS_BEFORE)
    return f"sm_{number}{'a' if is_own and number >= _FIRST_OWN else ''}"


def _tool(elf: ElfFile) -> tuple[str | None, str | None]:
    """The assembler with its version, and its `-arch` option."""
    for note in elf.notes():
        if note.owner != "NVIDIA Corp" or note.type != _TKINFO_TYPE:
            continue
        if len(note.content) < _TKINFO.size:
            continue
        _, _, tool, version, _, arguments = _TKINFO.unpack_from(note.content)
        strings = View(note.content, elf.view.name, _TKINFO.size)
        said = [
            strings.string(place, "what made it") if place < strings.size else ""
            for place in (tool, version, arguments)
        ]
        release = re.search(r", V([\d.]+)", said[1])
        arch = re.search(r"-arch[ =]+(\w+)", said[2])
        return f"{said[0]} {release[1] if release else said[1]}", arch[1] if arch else None
    return None, None


def _kernels(elf: ElfFile) -> Iterator[CubinKernel]:
    places = {name: index for index, name in enumerate(elf.names)}
    common = _common_attributes(elf, places)
    count = 0
    for index, (symbol, name) in enumerate(elf.symbol_table(), 1):
        if symbol.info & 0xF != _STT_FUNC or not symbol.other & _STO_CUDA_ENTRY:
            continue
        count += 1
        if count > _MOST_KERNELS:
            raise elf.view.damaged(f"it would have more than {_MOST_KERNELS} kernels")
        own = _own_attributes(elf, places.get(f".nv.info.{name}"))
        code = places.get(f".text.{name}")
        registers = common.get((_REGCOUNT, index))
        if registers is None and code is not None:
            # Before CUDA 9, the count was only there.
            registers = elf.sections[code].info >> 24 or None
        stack = common.get((_MIN_STACK_SIZE, index), common.get((_FRAME_SIZE, index)))
        shared = places.get(f".nv.shared.{name}")
        yield CubinKernel(
            name,
            index,
            registers,
            _shared_bytes(elf, shared, ".nv.shared.reserved.0" in places),
            stack,
            _half(own.get(_CBANK_PARAM_SIZE)),
            symbol.size if code is not None else None,
            _barriers(elf, code, own),
            _max_threads(own),
            _block(own.get(_REQNTID)),
        )


def _shared_bytes(elf: ElfFile, section: int | None, is_reserved: bool) -> int:
    """The shared memory that the kernel declares, as in ptxas's output. From sm_90 on, the section
    begins with memory that the driver reserves in each block; `cuobjdump -res-usage` counts it."""
    if section is None:
        return 0
    return max(0, elf.sections[section].size - (_RESERVED_SHARED if is_reserved else 0))


def _attributes(section: View) -> Iterator[tuple[int, bytes]]:
    """The (attribute, value) pairs of an .nv.info section."""
    at = 0
    for _ in range(_MOST_ATTRIBUTES):
        if at + _ATTRIBUTE.size > section.size:
            return
        format, attribute, value = section.unpack(_ATTRIBUTE, at, "an attribute")
        at += _ATTRIBUTE.size
        if format == _SVAL:
            yield attribute, section.read(at, value, "an attribute's value")
            at += value
        elif format in (_NVAL, _BVAL, _HVAL):
            yield attribute, struct.pack("<H", value)
        else:
            raise section.damaged(f"an attribute has the format {format}")


def _common_attributes(elf: ElfFile, places: dict[str, int]) -> dict[tuple[int, int], int]:
    """The attributes that are stored for all kernels together, by attribute and symbol index."""
    found: dict[tuple[int, int], int] = {}
    if ".nv.info" in places:
        section = elf.content(places[".nv.info"], ".nv.info")
        for attribute, value in _attributes(section):
            if attribute in (_REGCOUNT, _FRAME_SIZE, _MIN_STACK_SIZE) and len(value) == _PAIR.size:
                symbol, number = _PAIR.unpack(value)
                found[attribute, symbol] = number
    return found


def _own_attributes(elf: ElfFile, index: int | None) -> dict[int, bytes]:
    if index is None:
        return {}
    return dict(_attributes(elf.content(index, "a kernel's attributes")))


def _half(value: bytes | None) -> int | None:
    return struct.unpack("<H", value)[0] if value is not None and len(value) == 2 else None


def _block(value: bytes | None) -> tuple[int, int, int] | None:
    if value is None or len(value) != _BLOCK.size:
        return None
    x, y, z = _BLOCK.unpack(value)
    return x, y, z


def _max_threads(own: dict[int, bytes]) -> int | None:
    block = _block(own.get(_REQNTID)) or _block(own.get(_MAX_THREADS))
    return math.prod(block) if block is not None else None


def _barriers(elf: ElfFile, code: int | None, own: dict[int, bytes]) -> int | None:
    if (value := own.get(_NUM_BARRIERS)) is not None and value:
        return value[0]
    if code is None or not elf.sections[code].flags:
        return None
    # Before CUDA 13, the count is in the flags of the code's section.
    return elf.sections[code].flags >> 20 & 0x7F
