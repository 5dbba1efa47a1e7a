"""aotc's cache folder, and `make_once`: an entry of it, made whole or not at all."""

from __future__ import annotations

import contextlib
import functools
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from aotc.errors import InternalError, ToolError
from aotc.processes.record import note_file

# zig's own caches, in aotc's.
ZIG_FOLDER = "zig"


def zig_cache(environment: Mapping[str, str], program: str) -> Path:
    """The cache of one installation of zig, whose `program` that is.

    Two installations of one cache take each other's start-up code for changed, make it again, and
    hold locks that the other one waits for: two links at once waited forever (seen with zig 0.17
    in two virtual environments).
    """
    import hashlib

    # What zig tells files apart by: one that was installed anew is another, too.
    status = Path(program).stat()
    text = f"{Path(program).resolve()} {status.st_ino} {status.st_mtime_ns} {status.st_size}"
    return cache_root(environment) / ZIG_FOLDER / hashlib.sha256(text.encode()).hexdigest()[:16]


def cache_root(environment: Mapping[str, str]) -> Path:
    """The cache folder, made if need be.

    `XDG_CACHE_HOME/aotc`, else `HOME/.cache/aotc`, else (where neither can be written: a
    container without a home) a folder of this user's in the folder for temporary files.
    """
    for place in _wanted(environment):
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            if os.access(place, os.W_OK | os.X_OK):
                return place
    import tempfile

    return _temporary_cache(environment.get("TMPDIR") or tempfile.gettempdir())


def _wanted(environment: Mapping[str, str]) -> list[Path]:
    # The specification of XDG_CACHE_HOME says that a relative path is to be ignored.
    xdg = Path(environment.get("XDG_CACHE_HOME", ""))
    home = Path(environment.get("HOME", ""))
    places = []
    if xdg.is_absolute():
        places.append(xdg / "aotc")
    if home.is_absolute():
        places.append(home / ".cache" / "aotc")
    return places


@functools.cache
def _temporary_cache(parent: str) -> Path:
    """A private folder under `parent`, the same in the next process where that is safe."""
    import tempfile

    try:
        place = Path(parent) / f"aotc-cache-{os.getuid()}"
        with contextlib.suppress(FileExistsError):
            place.mkdir(mode=0o700)
        # Anybody may have put something of that name there.
        status = place.lstat()
        private = status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) & 0o077 == 0
        if stat.S_ISDIR(status.st_mode) and private:
            return place
        return Path(tempfile.mkdtemp(prefix="aotc-cache-", dir=parent))
    except OSError as error:
        raise ToolError(
            f"No folder for caches can be written: tried XDG_CACHE_HOME, HOME and {parent}: "
            f"{error}",
            hint="Set XDG_CACHE_HOME to a folder that can be written.",
        ) from None


def make_once(place: Path, make: Callable[[Path], None], *, expected: Sequence[str]) -> Path:
    """The folder `place`; if it is not there, what `make` puts into an empty folder.

    Of several processes that need the entry at once one makes it, and the others wait; where
    folders cannot be locked, each makes it, whole, and one wins. `expected` are the names of the
    files that `make` makes. Something may have removed some of them since (folders for temporary
    files get cleaned): then the entry is made again.
    """
    if _is_whole(place, expected):
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(error) from None
    with _locked(place.parent):
        return _make(place, make, expected)


def _make(place: Path, make: Callable[[Path], None], expected: Sequence[str]) -> Path:
    import shutil

    if _is_whole(place, expected):  # by whoever had the lock
        return place
    try:
        if place.exists():
            shutil.rmtree(place)
        draft = place.with_name(f".{place.name}-{os.urandom(4).hex()}")
        note_file(draft)
        draft.mkdir()
    except OSError as error:
        raise _cannot_write(error) from None
    try:
        make(draft)
        if not _is_whole(draft, expected):
            raise InternalError(f"Making {place.name} left out one of: {', '.join(expected)}.")
        draft.chmod(0o755)  # whatever the umask: others may share the cache
        try:
            draft.rename(place)
        except OSError:
            if not _is_whole(place, expected):  # else the other process won
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return place


def _cannot_write(error: OSError) -> ToolError:
    return ToolError(
        f"Cannot write to aotc's cache: {error}",
        hint="Set XDG_CACHE_HOME to a folder that can be written.",
    )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds a lock on the folder, which ends with this process, however that ends."""
    import fcntl

    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _is_whole(place: Path, expected: Sequence[str]) -> bool:
    return all((place / name).is_file() for name in expected)
