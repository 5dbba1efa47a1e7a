"""Damage to files, from a seed: blind, and in the fields of ELF, fat binary and ar headers."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable

_WIDTHS = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}
# (offset, size) within each structure.
_ELF_HEADER = [(4, 1), (5, 1), (8, 1), (16, 2), (18, 2), (32, 8), (40, 8), (48, 4)]
_ELF_HEADER += [(52 + 2 * i, 2) for i in range(6)]
_SECTION = [(0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8)]
_SYMBOL = [(0, 4), (4, 1), (5, 1), (6, 2), (8, 8), (16, 8)]
_FATBIN = [(4, 2), (6, 2), (8, 8)]
_FATBIN_ENTRY = [(0, 2), (4, 4), (8, 8), (16, 4), (20, 4), (28, 4), (40, 8), (56, 8)]
_TEXT = [b"{", b"}", b"[", b'"', b",", b":", b"null", b"-1", b"1e999", b"\\ud800", b"[" * 5000]


class Mutator:
    """Makes damaged copies of one file."""

    def __init__(self, content: bytes, seed: int) -> None:
        self._content = content
        self._random = random.Random(seed)
        self._fields = _fields(content)
        self._texts = [m.start() for m in re.finditer(rb'"[a-z_]+":|\.entry|\.version', content)]
        self._ways: list[Callable[[bytearray], None]] = [
            self._flip,
            self._truncate,
            self._copy,
            self._insert,
            self._remove,
            self._zero,
        ]

    def next(self) -> bytes:
        """Another damaged copy."""
        data = bytearray(self._content)
        for _ in range(self._random.choice((1, 1, 1, 2, 3, 8))):
            if self._fields and self._random.random() < 0.6:
                self._change_field(data)
            elif self._texts and self._random.random() < 0.2:
                self._change_text(data)
            else:
                self._random.choice(self._ways)(data)
        return bytes(data)

    def _change_field(self, data: bytearray) -> None:
        place, size = self._random.choice(self._fields)
        if place + size > len(data):
            return
        layout = _WIDTHS[size]
        (old,) = struct.unpack_from(layout, data, place)
        most = (1 << 8 * size) - 1
        new = self._random.choice(
            (
                0,
                1,
                most,
                most >> 1,
                1 << 28,
                len(data),
                len(data) - 1,
                old + 1,
                old - 1,
                old * 2,
                old + self._random.randrange(-64, 64),
                old ^ 1 << self._random.randrange(8 * size),
                self._random.randrange(len(data) + 1),
                self._random.randrange(most + 1),
            )
        )
        struct.pack_into(layout, data, place, new & most)

    def _change_text(self, data: bytearray) -> None:
        place = self._random.choice(self._texts) + self._random.randrange(24)
        text = self._random.choice(_TEXT)
        if self._random.random() < 0.8:
            data[place : place + len(text)] = text[: max(0, len(data) - place)]
        else:
            data[place:place] = text

    def _place(self, data: bytearray) -> int:
        return self._random.randrange(len(data)) if data else 0

    def _flip(self, data: bytearray) -> None:
        for _ in range(self._random.choice((1, 4, 64))):
            if data:
                data[self._place(data)] = self._random.randrange(256)

    def _truncate(self, data: bytearray) -> None:
        del data[self._place(data) :]

    def _copy(self, data: bytearray) -> None:
        size = self._random.choice((8, 64, 1024))
        start, to = self._place(data), self._place(data)
        data[to : to + size] = data[start : start + size]

    def _insert(self, data: bytearray) -> None:
        place = self._place(data)
        data[place:place] = self._random.randbytes(self._random.choice((1, 4, 8, 64)))

    def _remove(self, data: bytearray) -> None:
        place = self._place(data)
        del data[place : place + self._random.choice((1, 4, 8, 64))]

    def _zero(self, data: bytearray) -> None:
        place = self._place(data)
        size = min(self._random.choice((4, 64, 1024)), len(data) - place)
        data[place : place + size] = bytes([self._random.choice((0, 255))]) * size


def _fields(content: bytes) -> list[tuple[int, int]]:
    """Where headers have what readers go by, and how wide it is."""
    found: list[tuple[int, int]] = []
    for start in (m.start() for m in re.finditer(rb"\x7fELF\x02\x01\x01", content)):
        found += [(start + at, size) for at, size in _ELF_HEADER]
        found += _sections(content, start)
    for start in (m.start() for m in re.finditer(rb"\x50\xed\x55\xba\x01\x00\x10\x00", content)):
        found += [(start + at, size) for at, size in _FATBIN]
        found += _fatbin_entries(content, start + 16)
    for start in (m.start() - 58 for m in re.finditer(rb"`\n", content)):
        if start >= 8 and content.startswith(b"!<arch>"):
            found += [(start + at, 1) for at in (0, 1, 48, 49, 50, 51, 52, 58)] * 8
    return [(place, size) for place, size in found if place + size <= len(content)]


def _sections(content: bytes, start: int) -> list[tuple[int, int]]:
    found = []
    if start + 64 > len(content):
        return []
    (headers,) = struct.unpack_from("<Q", content, start + 40)
    (count,) = struct.unpack_from("<H", content, start + 60)
    for i in range(count):
        header = start + headers + 64 * i
        if header + 64 > len(content):
            break
        found += [(header + at, size) for at, size in _SECTION]
        kind, offset, size = (
            struct.unpack_from("<I", content, header + 4)[0],
            *struct.unpack_from("<QQ", content, header + 24),
        )
        place = start + offset
        if kind in (2, 11):  # symbols: the first few
            found += [
                (place + 24 * k + at, w) for k in range(min(size // 24, 12)) for at, w in _SYMBOL
            ]
        elif kind in (6, 7, 0x6FFFFFFE, 0x70000000):
            # Dynamic entries, notes, versions, NVIDIA's attributes.
            found += [(place + at, 4) for at in range(0, min(size, 160) // 4 * 4, 4)]
    return found


def _fatbin_entries(content: bytes, at: int) -> list[tuple[int, int]]:
    found = []
    while at + 64 <= len(content):
        kind, _, header, size = struct.unpack_from("<HHIQ", content, at)
        if kind not in (1, 2):
            break
        found += [(at + place, width) for place, width in _FATBIN_ENTRY] * 4
        at += header + size
    return found
