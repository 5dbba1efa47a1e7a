"""The limit for the cache's size: AOTC_CACHE_SIZE, `aotc cache trim --size`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from aotc.errors import InputError

VARIABLE = "AOTC_CACHE_SIZE"
DEFAULT = 4 << 30
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([KMGT]?)(?:iB|B)?", re.IGNORECASE)
_NAMED = (("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30))


def limit_of(environment: Mapping[str, str]) -> int:
    """The limit in bytes. Raises InputError for an invalid size."""
    text = environment.get(VARIABLE)
    return parse_size(text, VARIABLE) if text else DEFAULT


def parse_size(text: str, what: str) -> int:
    """Bytes from `500M`, `4G`, `4GiB`, `1000000`; `what` names the option in messages."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise InputError(f"{what} '{text}' is not a size: write 4G, 500M or a number of bytes.")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def size_text(size: float) -> str:
    """The size in readable form: `1.5 GiB`."""
    if size < 1 << 10:
        return f"{size:.0f} B"
    name, unit = next((n, u) for n, u in _NAMED if size < u << 10 or n == "GiB")
    return f"{size / unit:.1f} {name}"
