"""Changes of bytes, for every format; and what the mutators of single formats have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

# In bytes: of larger inputs, time and memory are what is found, again and again.
LARGEST = 1 << 20

# Sizes at which arithmetic and memory end.
NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 17, 31, 33, 64, 127, 128, 255, 256, 1000, 1025, 65535, 65536, 65537),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**40, 2**61, 2**62, 2**62 + 1),
    *(2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**65, -(2**31), -(2**63), -(2**63) - 1, 10**30),
)


def number(random: Random) -> int:
    return random.choice(NUMBERS)


def several(value: T, changes: Sequence[Callable[[T, Random], T]], random: Random) -> T:
    """One change mostly, of few the input is still valid; sometimes more. One that makes text or
    bytes larger than `LARGEST` is left out."""
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5))):
        changed = random.choice(changes)(value, random)
        if not isinstance(changed, str | bytes) or len(changed) <= LARGEST:
            value = changed
    return value


def mutate_bytes(data: bytes, random: Random) -> bytes:
    return several(data, _CHANGES, random)


def _place(data: bytes, random: Random) -> int:
    return random.randrange(len(data) + 1)


def flip(data: bytes, random: Random) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]


def _replace(data: bytes, random: Random) -> bytes:
    at = _place(data, random)
    new = random.choice(
        (b"\0", b"\xff", b"\x80", b"\x7f", b"\x01", b"\xff\xff\xff\xff", b"\0\0\0\0\0\0\0\0")
    )
    return data[:at] + new + data[at + len(new) :]


def _truncate(data: bytes, random: Random) -> bytes:
    return data[: _place(data, random)]


def _delete(data: bytes, random: Random) -> bytes:
    at = _place(data, random)
    return data[:at] + data[at + random.choice((1, 1, 2, 4, 8, 64)) :]


def _insert(data: bytes, random: Random) -> bytes:
    at = _place(data, random)
    return data[:at] + random.randbytes(random.choice((1, 1, 2, 4, 8, 64))) + data[at:]


def _duplicate(data: bytes, random: Random) -> bytes:
    start, length = _place(data, random), random.choice((1, 4, 16, 128))
    at = _place(data, random)
    return data[:at] + data[start : start + length] + data[at:]


_CHANGES = (flip, flip, flip, _replace, _replace, _truncate, _delete, _insert, _duplicate)
