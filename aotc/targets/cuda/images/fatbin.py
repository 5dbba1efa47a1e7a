"""Fat binaries: the entries of a container, with their content after decompression.

NVIDIA does not document the format. This module has what public readers of it agree on
(github.com/n-eiling/cuda-fatbin-decompression, github.com/jiegec/fatbinary). It was compared with
the output of `fatbinary` of CUDA 13 in each of its modes.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator

from msgspec import Struct

from aotc.errors import InputError
from aotc.images.view import View
from aotc.targets.cuda.images import lz4

MAGIC = b"\x50\xed\x55\xba"
# The header: magic, version, header size, bytes of all entries.
_HEADER = struct.Struct("<IHHQ")
# An entry: kind, version, header size, bytes with padding, bytes when compressed, offset of the
# options, minor and major version, the chip's number, offset and size of a name, flags, -, bytes
# before compression.
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_KINDS = {1: "ptx", 2: "cubin", 8: "ltoir"}
_FLAG_LZ4, _FLAG_ZSTD = 0x2000, 0x8000

# Limits on the cost of reading one file.
LARGEST_IMAGE = 1 << 27
_MOST_ENTRIES = 1 << 17
_MOST_DECOMPRESSED = 1 << 32
_MOST_KERNELS = 1 << 20


class Budget(Struct):
    """The remaining limits of one file."""

    entries: int = _MOST_ENTRIES
    bytes: int = _MOST_DECOMPRESSED
    kernels: int = _MOST_KERNELS


class Entry(Struct, frozen=True):
    """An image in a fat binary: its kind (`ptx`, `cubin` or another one) and the number of its chip
    (90). `compression` is `lz4`, `zstd` or None.
    """

    kind: str
    number: int
    stored: View
    size: int
    compression: str | None

    def content(self, budget: Budget) -> View:
        """The decompressed image. Raises InputError if it is damaged or too large."""
        if self.compression is None:
            return self.stored
        budget.bytes -= self.size
        if self.size > LARGEST_IMAGE or budget.bytes < 0:
            raise self.stored.damaged(f"it would have {self.size} bytes without compression")
        stored = self.stored.all()
        if self.compression == "lz4":
            content = lz4.decompress(stored, self.size, self.stored.name)
        else:
            content = _unzstd(stored, self.size, self.stored)
        return View(content, self.stored.name)


def is_fatbin(view: View) -> bool:
    """Whether a container begins at `view`. (The magic alone may also be a constant of a
    program.)"""
    if not view.starts_with(MAGIC) or _HEADER.size > view.size:
        return False
    _, version, header, _ = view.unpack(_HEADER, 0, "a fat binary's header")
    return version == 1 and header >= _HEADER.size


def container_size(view: View) -> int:
    """The size of a fat binary, from its header. Raises InputError."""
    _, _, header, size = view.unpack(_HEADER, 0, "its header")
    view.check(header, size, "its content")
    return header + size


def entries(view: View, budget: Budget) -> Iterator[Entry]:
    """The images of the fat binary that begins at `view`, in order. Raises InputError."""
    _, _, at, size = view.unpack(_HEADER, 0, "its header")
    end = min(at + size, view.size)
    number = 0
    # Containers in a section are padded with zeros.
    while at + _ENTRY.size <= end:
        kind, _, header, padded, compressed, _, _, _, sm, _, _, flags, _, raw = view.unpack(
            _ENTRY, at, "an entry"
        )
        if kind == 0 and header == 0:
            break
        if header < _ENTRY.size:
            raise view.damaged(f"the header of its entry {number} has {header} bytes")
        budget.entries -= 1
        if budget.entries < 0:
            raise view.damaged(f"it would have more than {_MOST_ENTRIES} images")
        compression = "zstd" if flags & _FLAG_ZSTD else "lz4" if flags & _FLAG_LZ4 else None
        size = compressed if compression else padded
        name = f"image {number} of {view.name}"
        stored = view.part(at + header, size, f"entry {number}", name=name)
        yield Entry(
            _KINDS.get(kind, f"kind {kind}"), sm, stored, raw if compression else size, compression
        )
        # The walk also advances if damage has made the padded size smaller.
        at += header + max(padded, size)
        number += 1
    if at < end and view.read(at, end - at, "its end").strip(b"\0"):
        raise view.damaged(f"what follows its {number} images is none")


def _unzstd(stored: bytes, size: int, view: View) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    try:
        # One byte more than expected, so that a content that is too long is detected.
        content = zstd.ZstdDecompressor().decompress(stored, max_length=size + 1)
    except (zstd.ZstdError, EOFError, MemoryError) as error:
        raise InputError(f"{view.name} is damaged: zstd: {error}.") from None
    if len(content) != size:
        raise view.damaged(f"it has {len(content)} bytes without compression, not {size}")
    return content
