"""Changes of MLIR bytecode: of its header, of whole sections, and within one.

The file is the magic number, the version, the producer's name up to a zero byte, and sections: a
byte with the section's number (its high bit tells of an alignment), the length, the data. Lengths
stay right where the data grows, so that the reader gets to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from fuzz.mutators import flip, mutate_bytes, several

_MAGIC = b"ML\xefR"


@dataclass(frozen=True)
class _Section:
    number: int
    alignment: int | None
    data: bytes


@dataclass(frozen=True)
class _Bytecode:
    version: int
    producer: bytes
    sections: tuple[_Section, ...]


def mutate_bytecode(data: bytes, random: Random) -> bytes:
    """`data` with some changes; by its bytes alone where it is not bytecode any more."""
    if random.random() < 0.35:
        return mutate_bytes(data, random)
    try:
        code = _read(data)
    except (IndexError, ValueError, ZeroDivisionError):
        return mutate_bytes(data, random)
    return _written(several(code, _CHANGES, random))


def varint(value: int) -> bytes:
    """As bytecode has a number: the zero bits at the low end tell how many bytes follow."""
    for length in range(1, 9):
        if value < 1 << (7 * length):
            return ((value << length) | (1 << (length - 1))).to_bytes(length, "little")
    return b"\0" + (value % (1 << 64)).to_bytes(8, "little")


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at this place, and the place behind it."""
    first = data[at]
    if first == 0:
        return int.from_bytes(data[at + 1 : at + 9], "little"), at + 9
    length = (first & -first).bit_length()
    return int.from_bytes(data[at : at + length], "little") >> length, at + length


def _read(data: bytes) -> _Bytecode:
    version, at = read_varint(data, len(_MAGIC))
    end = data.index(b"\0", at)
    producer, at = data[at:end], end + 1
    sections = []
    while at < len(data):
        kind = data[at]
        length, at = read_varint(data, at + 1)
        alignment = None
        if kind & 0x80:
            alignment, at = read_varint(data, at)
            at += -at % alignment
        sections.append(_Section(kind & 0x7F, alignment, data[at : at + length]))
        at += length
    return _Bytecode(version, producer, tuple(sections))


def _written(code: _Bytecode) -> bytes:
    out = _MAGIC + varint(code.version) + code.producer + b"\0"
    for section in code.sections:
        flag = 0 if section.alignment is None else 0x80
        out += bytes([section.number | flag]) + varint(len(section.data))
        if section.alignment is not None:
            out += varint(section.alignment)
            out += b"\xcb" * (-len(out) % max(1, min(section.alignment, 4096)))
        out += section.data
    return out


def _change_header(code: _Bytecode, random: Random) -> _Bytecode:
    if random.random() < 0.5:
        return replace(code, version=random.choice((0, 1, 2, 3, 4, 5, 6, 7, 100, 2**63)))
    return replace(code, producer=random.choice((b"", b"\xff\xfe", b"MLIR" * 5000)))


def _change_order(code: _Bytecode, random: Random) -> _Bytecode:
    sections = list(code.sections)
    if not sections:
        return code
    at = random.randrange(len(sections))
    how = random.randrange(4)
    if how == 0:
        del sections[at]
    elif how == 1:
        sections.insert(random.randrange(len(sections)), sections[at])
    elif how == 2:
        sections[at] = replace(sections[at], number=random.randrange(12))
    else:
        alignment = random.choice((0, 1, 3, 16, 2**40))
        sections[at] = replace(sections[at], alignment=alignment)
    return replace(code, sections=tuple(sections))


def _change_data(code: _Bytecode, random: Random) -> _Bytecode:
    return _in_section(code, random, mutate_bytes)


def _flip_data(code: _Bytecode, random: Random) -> _Bytecode:
    return _in_section(code, random, flip)


def _change_number(code: _Bytecode, random: Random) -> _Bytecode:
    """A number of a section, most of which are indices, is another."""

    def change(data: bytes, random: Random) -> bytes:
        if not data:
            return data
        at = random.randrange(len(data))
        value, end = read_varint(data, at)
        new = random.choice((0, 1, 2, value + 1, max(0, value - 1), 2 * value, 2**32, 2**63))
        return data[:at] + varint(new) + data[end:]

    return _in_section(code, random, change)


def _in_section(
    code: _Bytecode, random: Random, change: Callable[[bytes, Random], bytes]
) -> _Bytecode:
    sections = list(code.sections)
    if not sections:
        return code
    at = random.randrange(len(sections))
    sections[at] = replace(sections[at], data=change(sections[at].data, random))
    return replace(code, sections=tuple(sections))


_CHANGES = (
    *(_flip_data, _flip_data, _flip_data, _change_number, _change_number, _change_number),
    *(_change_data, _change_order, _change_header),
)
