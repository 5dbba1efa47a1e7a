"""Measures the cache's size, and removes the least recently used entries.

A journal has one line per process that used the cache: results found, results missed, bytes added.
Their sum determines when to measure the folder, which takes long, and the hit rate.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from aotc.cache.result import ActionResult
from aotc.cache.store import Miss, Store
from aotc.cache_folder import ZIG_FOLDER

JOURNAL = "journal"
# Folders of what aotc and zig make once per host target, as opposed to results of builds.
RUNTIME_FOLDERS = ("runtime", "utilities", "harness")
# The patterns of the store's file names, by folder: other files must not be removed.
_NAMES = {
    **dict.fromkeys(("ac", "cas"), re.compile(r"[0-9a-f]{64}")),
    **dict.fromkeys(("last", "identity"), re.compile(r"[0-9a-f]{32}")),
    "tmp": re.compile(r"\d+-[0-9a-f]{16}"),
}
# A journal with more bytes than this is merged into one line.
_LONG_JOURNAL = 1 << 16
# Seconds for which a draft, or a blob without a result, is kept: another process may need it.
_GRACE = 3600.0
# The folder is measured after this fraction of the limit (1 / _PART) was added; trimming frees as
# much.
_PART = 8


class Usage(Struct, frozen=True):
    """The contents of the folder: sizes in bytes; `found` and `missed` since the last clear."""

    results: int
    blobs: int
    bytes: int
    drafts: int
    runtime_bytes: int
    zig_bytes: int
    found: int
    missed: int


class Trimmed(Struct, frozen=True):
    """What was removed."""

    results: int
    bytes: int


def note_use(store: Store, found: int, missed: int, limit: int) -> None:
    """Records the use by this process at its end, and trims if much was added."""
    store.append(JOURNAL, b"%d %d %d\n" % (found, missed, store.bytes_added))
    if store.trouble is not None:
        return
    place = store.root / JOURNAL
    with contextlib.suppress(OSError):
        if store.bytes_added or place.stat().st_size > _LONG_JOURNAL:
            _, _, added = _read_journal(place)
            if added > limit // _PART:
                trim(store, limit - limit // _PART)
            elif place.stat().st_size > _LONG_JOURNAL:
                _shorten_journal(store, reset=False)


def usage(store: Store, shared: Path | None = None) -> Usage:
    """The usage of the store, and of the folder `shared` with what is made once per host target."""
    root = store.root
    shared = shared or root
    results, blobs, drafts = (list(_own(root, name)) for name in ("ac", "cas", "tmp"))
    others = [*_own(root, "last"), *_own(root, "identity")]
    found, missed, _ = _read_journal(root / JOURNAL)
    return Usage(
        results=len(results),
        blobs=len(blobs),
        bytes=sum(status.st_size for _, status in [*results, *blobs, *drafts, *others]),
        drafts=len(drafts),
        runtime_bytes=sum(_size(shared / name) for name in RUNTIME_FOLDERS),
        zig_bytes=_size(shared / ZIG_FOLDER),
        found=found,
        missed=missed,
    )


def trim(store: Store, limit: int) -> Trimmed:
    """Removes the least recently used results until blobs and results are at most `limit` bytes,
    and blobs without a result, and drafts of killed processes.

    A lock ensures that only one process trims at a time; others do nothing.
    """
    with _lock(store.root) as is_ours:
        if not is_ours:
            return Trimmed(0, 0)
        trimmed = _trim(store, limit)
        _shorten_journal(store, reset=True)
        return trimmed


def _trim(store: Store, limit: int) -> Trimmed:
    root = store.root
    now = time.time()
    for name in ("tmp", "last", "identity"):
        # Also removes the notes of builds that were not repeated for long.
        for path, status in _own(root, name):
            if now - status.st_mtime > (_GRACE if name == "tmp" else 720 * _GRACE):
                _unlink(path)
    blobs = {path.name: (path, status) for path, status in _own(root, "cas")}
    newest_first = sorted(_own(root, "ac"), key=lambda file: -file[1].st_mtime)
    kept_bytes, needed, removed, removed_bytes = 0, set(), 0, 0
    is_full = False
    for path, status in newest_first:
        digests = _needs(store, path)
        new = [name for name in digests or () if name not in needed and name in blobs]
        size = status.st_size + sum(blobs[name][1].st_size for name in new)
        is_whole = digests is not None and all(name in blobs for name in digests)
        is_full = is_full or kept_bytes + size > limit
        if is_full or not is_whole:
            _unlink(path)
            removed += 1
            removed_bytes += status.st_size
            continue
        kept_bytes += size
        needed.update(new)
    for name, (path, status) in blobs.items():
        # If the limit is exceeded, blobs that another process may be about to use go, too.
        if name not in needed and (is_full or now - status.st_mtime > _GRACE):
            _unlink(path)
            removed_bytes += status.st_size
    return Trimmed(removed, removed_bytes)


def clear(store: Store, shared: Path | None = None) -> None:
    """Removes all results, and from the folder `shared` what was made once per host target."""
    for name in _NAMES:
        for path, _ in _own(store.root, name):
            _unlink(path)
        _remove_empty(store.root / name)
    if shared is not None:
        for name in (*RUNTIME_FOLDERS, ZIG_FOLDER):
            shutil.rmtree(shared / name, ignore_errors=True)
    _unlink(store.root / JOURNAL)


def _remove_empty(folder: Path) -> None:
    """Removes a folder and its subfolders that are empty."""
    with contextlib.suppress(OSError):
        for inner in folder.iterdir():
            with contextlib.suppress(OSError):
                inner.rmdir()
        folder.rmdir()


def _own(root: Path, name: str) -> Iterator[tuple[Path, os.stat_result]]:
    """The store's files in one of its folders."""
    for path, status in _files(root / name):
        if _NAMES[name].fullmatch(path.name):
            yield path, status


def _needs(store: Store, result: Path) -> list[str] | None:
    """The names of the blobs that a result needs; None for a damaged result."""
    try:
        digests = ActionResult.from_bytes(store.read_sealed(result)).digests
    except (Miss, ValueError):
        return None
    return [digest.hash for digest in digests if digest.size]


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The readable files under a folder; other processes may remove them at any time."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path))
                continue
            with contextlib.suppress(OSError):
                yield Path(entry.path), entry.stat(follow_symlinks=False)


def _size(folder: Path) -> int:
    return sum(status.st_size for _, status in _files(folder))


def _read_journal(place: Path) -> tuple[int, int, int]:
    """Found, missed, bytes added since the last measurement. Invalid lines are ignored."""
    try:
        lines = place.read_bytes().split(b"\n")
    except OSError:
        return 0, 0, 0
    found = missed = added = 0
    for line in lines:
        numbers = line.split()
        if len(numbers) == 3 and all(number.isdigit() for number in numbers):
            found += int(numbers[0])
            missed += int(numbers[1])
            added += int(numbers[2])
    return found, missed, added


def _shorten_journal(store: Store, *, reset: bool) -> None:
    """Merges the journal into one line. (A concurrent write may be lost: it is only statistics.)"""
    place = store.root / JOURNAL
    found, missed, added = _read_journal(place)
    with contextlib.suppress(OSError):
        draft = place.with_name(f"{JOURNAL}.{os.getpid()}")
        draft.write_bytes(b"%d %d %d\n" % (found, missed, 0 if reset else added))
        draft.replace(place)


@contextlib.contextmanager
def _lock(root: Path) -> Iterator[bool]:
    """Takes the lock, if it is free; yields whether this process has it."""
    try:
        file = (root / "lock").open("wb")
    except OSError:
        # The folder is not writable, or the disk is full; if it is full, trim without the lock.
        yield os.access(root, os.W_OK)
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a file system that does not support locks
            pass
        yield True


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
