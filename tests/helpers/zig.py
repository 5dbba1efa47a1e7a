"""zig's cache for the programs of tests: what zig adds to them is made once, and not for each."""

from __future__ import annotations

from helpers.command import REPOSITORY

ZIG_CACHE = {
    name: str(REPOSITORY / "build" / "zig")
    for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")
}
