"""Small files that ask for much time or memory. Run, it says what each of them took, as JSON."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable

from inspected.fuzz import look_at, peak_mib

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_IDENTIFICATION = b"\x7fELF\x02\x01\x01"
_CUDA, _X86_64 = 190, 62


def fatbin_of(kind: int, flags: int, stored: bytes, size: int) -> bytes:
    """A fat binary of one image, `stored`, that says that it has `size` bytes."""
    padded = stored + bytes(-len(stored) % 8)
    sizes = (len(padded), len(stored))
    entry = struct.pack("<HHIQIIHHIII", kind, 0x101, 64, *sizes, 0, 8, 1, 80, 0, 0)
    entry += struct.pack("<QQQ", flags, 0, size)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 64 + len(padded)) + entry + padded


def _elf(machine: int, content: bytes, section: tuple[int, ...] = (), count: int = 0) -> bytes:
    """An ELF file of `content`, and `count` times one section of it."""
    headers = 64 + len(content) if count else 0
    fields = (1, machine, 1, 0, 0, headers, 0, 64, 0, 0, 64 if count else 0, count, min(count, 1))
    start = _HEADER.pack(_IDENTIFICATION, *fields)
    return start + content + (_SECTION.pack(*section) * count if count else b"")


def _long_names() -> bytes:
    names = b"n" * 60_000 + b"\0"
    return _elf(_X86_64, names, (0, 3, 0, 0, 64, len(names), 0, 0, 1, 0), 60_000)


def _manifest_of_lists() -> bytes:
    content = struct.pack("<III", 5, 1 << 20, 1) + b"aotc\0\0\0\0" + b"[" * (1 << 20)
    return _elf(_X86_64, content, (0, 7, 0, 0, 64, len(content), 0, 0, 4, 0), 1)


HOSTILE: dict[str, Callable[[], bytes]] = {
    "zstd that says 2 GiB": lambda: fatbin_of(1, 0x8000, b"\x28\xb5\x2f\xfd" * 256, 1 << 31),
    "lz4 of the largest size": lambda: fatbin_of(
        1, 0x2000, b"\x1fa\x01\x00" + b"\xff" * 526_343 + b"\xf3", 1 << 27
    ),
    "names in one another": _long_names,
    "kernels without end": lambda: b".version 8.0\n.target sm_80\n" + b".entry a" * (1 << 15),
    "comments without end": lambda: b"/*" * (1 << 20),
    "starts of PTX": lambda: _elf(_X86_64, b".version 8.0 .target a " * (1 << 17)),
    "words of PTX": lambda: _elf(_X86_64, b".version " * (1 << 17)),
    "starts of fat binaries": lambda: struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 20) * (1 << 15),
    "starts of cubins": lambda: _elf(_X86_64, _elf(_CUDA, b"") * (1 << 14)),
    "lists without end": _manifest_of_lists,
}


def main() -> None:
    found = {}
    for what, make in HOSTILE.items():
        content = make()
        start = time.monotonic()
        look_at(content)
        peak = peak_mib()
        found[what] = (time.monotonic() - start, peak)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
