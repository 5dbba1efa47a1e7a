"""How much is in the cache, and taking the least recently used out of it.

A journal has a line for each process that used the cache: results found, results missed, bytes
added. Its sum tells when to look at the folder, which takes long, and how often the cache helped.
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
# What aotc and zig make once for a host target: not the results of builds.
RUNTIME_FOLDERS = ("runtime", "utilities", "harness")
# What the store's files are called, by their folders: others there are not ours to remove.
_NAMES = {
    **dict.fromkeys(("ac", "cas"), re.compile(r"[0-9a-f]{64}")),
    **dict.fromkeys(("last", "identity"), re.compile(r"[0-9a-f]{32}")),
    "tmp": re.compile(r"\d+-[0-9a-f]{16}"),
}
# A journal of this many bytes is made one line.
_LONG_JOURNAL = 1 << 16
# A draft, or a blob without a result, may be another process's that is about to need it.
_GRACE = 3600.0
# When this part of the limit was added, we look; what is taken away then makes room for it.
_PART = 8


class Usage(Struct, frozen=True):
    """What the folder holds: sizes in bytes; `found` and `missed` count since the last clear."""

    results: int
    blobs: int
    bytes: int
    drafts: int
    runtime_bytes: int
    zig_bytes: int
    found: int
    missed: int


class Trimmed(Struct, frozen=True):
    """What was taken out."""

    results: int
    bytes: int


def note_use(store: Store, found: int, missed: int, limit: int) -> None:
    """At the end of a process's use: writes it down, and trims where much was added."""
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
    """What is in the store, and in the folder `shared` of what is made once for host targets."""
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
    """Removes the results that were not used for longest, until blobs and results are at most
    `limit` bytes; blobs that no result needs; drafts that a kill left behind.

    One process does it at a time: another finds nothing to do.
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
        # The notes of builds that nobody did for long, too.
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
        # With no room left there is none for blobs that may be of use to another process.
        if name not in needed and (is_full or now - status.st_mtime > _GRACE):
            _unlink(path)
            removed_bytes += status.st_size
    return Trimmed(removed, removed_bytes)


def clear(store: Store, shared: Path | None = None) -> None:
    """Removes all results, and from the folder `shared` what was built once for host targets."""
    for name in _NAMES:
        for path, _ in _own(store.root, name):
            _unlink(path)
        _remove_empty(store.root / name)
    if shared is not None:
        for name in (*RUNTIME_FOLDERS, ZIG_FOLDER):
            shutil.rmtree(shared / name, ignore_errors=True)
    _unlink(store.root / JOURNAL)


def _remove_empty(folder: Path) -> None:
    """Removes a folder and those in it, as far as nothing is left in them."""
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
    """The names of the blobs that a result needs; None for a result that is damaged."""
    try:
        digests = ActionResult.from_bytes(store.read_sealed(result)).digests
    except (Miss, ValueError):
        return None
    return [digest.hash for digest in digests if digest.size]


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The files under a folder, as far as it can be read; others may remove them meanwhile."""
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
    """Found, missed, bytes added since the last look. Lines that are none count nothing."""
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
    """One line for all. (What another process writes in this moment may be lost: it counts.)"""
    place = store.root / JOURNAL
    found, missed, added = _read_journal(place)
    with contextlib.suppress(OSError):
        draft = place.with_name(f"{JOURNAL}.{os.getpid()}")
        draft.write_bytes(b"%d %d %d\n" % (found, missed, 0 if reset else added))
        draft.replace(place)


@contextlib.contextmanager
def _lock(root: Path) -> Iterator[bool]:
    """Whether nobody else has the lock."""
    try:
        file = (root / "lock").open("wb")
    except OSError:
        # A folder that cannot be written, or a full disk: then room must be made.
        yield os.access(root, os.W_OK)
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a file system without locks
            pass
        yield True


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
