"""The file of weights: constants identified by the SHA-256 of their bytes, shared by artifacts.

docs/weights.md has the format.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from aotc.errors import InputError

MAGIC = b"aotc-wts"
VERSION = 2
# Magic, version, number of weights, bytes of the file, SHA-256 of the table and the names.
HEADER = struct.Struct("<8sIIQ32s8x")
# SHA-256 of the data, offset and bytes of the data, offset and bytes of the name, alignment.
ROW = struct.Struct("<32sQQQII")
_CHUNK = 1 << 24

Pieces = Callable[[], Iterable[bytes | memoryview]]


class Content(Struct, frozen=True):
    """A weight to write: its bytes, in chunks, and its metadata in the file."""

    name: str
    digest: bytes
    size: int
    alignment: int
    pieces: Pieces


class Row(Struct, frozen=True):
    """A weight in a file."""

    name: str
    digest: bytes
    offset: int
    size: int
    alignment: int


def digest_of(pieces: Iterable[bytes | memoryview]) -> bytes:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.digest()


def write_weights_file(place: Path, contents: Sequence[Content]) -> tuple[int, bytes]:
    """Writes the file, with equal weights stored once; returns its size and its header's digest."""
    by_digest: dict[bytes, Content] = {}
    for content in contents:
        known = by_digest.get(content.digest)
        if known is None or known.alignment < content.alignment:
            by_digest[content.digest] = content
    ordered = [by_digest[digest] for digest in sorted(by_digest)]
    names = [content.name.encode() for content in ordered]
    at = HEADER.size + len(ordered) * ROW.size
    offset = at + sum(map(len, names))
    table, offsets = [], []
    for content, name in zip(ordered, names, strict=True):
        offset += -offset % content.alignment
        table.append(
            ROW.pack(content.digest, offset, content.size, at, len(name), content.alignment)
        )
        offsets.append(offset)
        at += len(name)
        offset += content.size
    beginning = b"".join([*table, *names])
    digest = hashlib.sha256(beginning).digest()
    with place.open("wb") as out:
        out.write(HEADER.pack(MAGIC, VERSION, len(ordered), offset, digest))
        out.write(beginning)
        for content, start in zip(ordered, offsets, strict=True):
            out.write(bytes(start - out.tell()))
            for piece in content.pieces():
                out.write(piece)
    return offset, digest


def read_weights_file(place: Path) -> dict[bytes, Row]:
    """The weights of a file by digest. Raises InputError for any other file."""
    wrong = InputError(f"'{place}' is no file of weights that this aotc made.")
    with place.open("rb") as file:
        header = file.read(HEADER.size)
        if len(header) < HEADER.size:
            raise wrong
        magic, version, count, size, digest = HEADER.unpack(header)
        if magic != MAGIC or version != VERSION or size != place.stat().st_size:
            raise wrong
        rows = [ROW.unpack(row) for row in _read_rows(file.read(count * ROW.size), count, wrong)]
        names = [file.read(length) for *_, length, _ in rows]
    table = b"".join(ROW.pack(*row) for row in rows)
    if hashlib.sha256(b"".join([table, *names])).digest() != digest:
        raise wrong
    return {
        row[0]: Row(name.decode(errors="replace"), row[0], row[1], row[2], row[5])
        for row, name in zip(rows, names, strict=True)
    }


def _read_rows(table: bytes, count: int, wrong: InputError) -> Iterator[bytes]:
    if len(table) != count * ROW.size:
        raise wrong
    for start in range(0, len(table), ROW.size):
        yield table[start : start + ROW.size]


def add_weights(old: Path, new: Path, merged: Path) -> bool:
    """Writes `merged`, with the weights of both, if `old` lacks a weight of `new`; returns whether
    it does."""
    kept, given = read_weights_file(old), read_weights_file(new)
    if given.keys() <= kept.keys():
        return False
    write_weights_file(merged, [*_contents(old, kept), *_contents(new, given)])
    return True


def _contents(place: Path, rows: Mapping[bytes, Row]) -> Iterator[Content]:
    for row in rows.values():
        yield Content(row.name, row.digest, row.size, row.alignment, _reader(place, row))


def _reader(place: Path, row: Row) -> Pieces:
    def pieces() -> Iterator[bytes]:
        with place.open("rb") as file:
            file.seek(row.offset)
            left = row.size
            while left > 0:
                piece = file.read(min(left, _CHUNK))
                if not piece:
                    raise InputError(f"'{place}' became shorter while it was read.")
                left -= len(piece)
                yield piece

    return pieces
