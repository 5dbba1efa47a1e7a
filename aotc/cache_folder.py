"""aotc's cache folder, and `make_once`, which makes an entry atomically and checks its hashes
before each use.

The folder holds the tools' runtime and the results of builds (`aotc.cache`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from aotc.errors import InternalError, ToolError
from aotc.processes.record import note_file

# Bytes of the SHA-256 at the start of content whose hash is not part of its name.
SEAL_SIZE = 64
# Reasons why an entry cannot be used.
ABSENT = "not there"
DAMAGED = "damaged: its hash was wrong"
# The folder for what zig caches for links.
ZIG_FOLDER = "zig"
# The file, in each entry that is made once, with the SHA-256 and the name of each other file.
_HASHES = ".hashes"


def zig_cache(environment: Mapping[str, str], program: str) -> Path:
    """The cache folder of the zig installation that contains `program`.

    If two installations share a cache, each considers the other's start-up code changed and makes
    it again, and holds locks that the other waits for: two concurrent links waited forever (seen
    with zig 0.17 in two virtual environments).
    """
    # zig compares files by the same attributes; a reinstalled zig gets a new folder, too.
    status = Path(program).stat()
    text = f"{Path(program).resolve()} {status.st_ino} {status.st_mtime_ns} {status.st_size}"
    return (
        cache_root(environment)
        / ZIG_FOLDER
        / hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]
    )


def cache_root(environment: Mapping[str, str]) -> Path:
    """The cache folder, created if necessary.

    `XDG_CACHE_HOME/aotc`, else `HOME/.cache/aotc`. If neither can be written (a container without
    a home directory), a folder of this user in the folder for temporary files.
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
    """A private folder under `parent`; later processes get the same one if that is safe."""
    import tempfile

    try:
        place = Path(parent) / f"aotc-cache-{os.getuid()}"
        with contextlib.suppress(FileExistsError):
            place.mkdir(mode=0o700)
        # Any user may have created something with this name.
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


def make_once(
    place: Path,
    make: Callable[[Path], None],
    *,
    expected: Sequence[str],
    tell: Callable[[str], None] = lambda why: None,
) -> Path:
    """The folder `place`; if it does not exist, it is created with what `make` writes.

    `make` is called with an empty folder. If several processes need the entry at once, one makes it
    and the others wait; if folders cannot be locked, each makes it and one rename succeeds.
    `expected` are names of files that `make` must write. Each file is checked by its hash: if one
    was damaged or removed, the entry is made again, and `tell` is called with the reason.
    """
    if _trouble(place, expected) is None:
        return place
    try:
        _make_folder(place.parent)
    except OSError as error:
        raise _cannot_write(error) from None
    with _locked(place.parent):
        return _make(place, make, expected, tell)


def _make_folder(folder: Path) -> None:
    """Creates a folder of the cache; removes a file of the same name, which is not part of it."""
    if os.path.lexists(folder) and not folder.is_dir():
        folder.unlink()
    folder.mkdir(parents=True, exist_ok=True)


def _make(
    place: Path,
    make: Callable[[Path], None],
    expected: Sequence[str],
    tell: Callable[[str], None],
) -> Path:
    import shutil

    trouble = _trouble(place, expected)
    if trouble is None:  # made by the process that held the lock
        return place
    try:
        draft = place.with_name(f".{place.name}-{os.urandom(4).hex()}")
        note_file(draft)
        draft.mkdir()
        if os.path.lexists(place):
            tell(trouble)
            _take_away(place)
    except OSError as error:
        raise _cannot_write(error) from None
    try:
        make(draft)
        _write_hashes(draft)
        if _trouble(draft, expected) is not None:
            raise InternalError(f"Making {place.name} left out one of: {', '.join(expected)}.")
        draft.chmod(0o755)  # regardless of the umask: other users may share the cache
        try:
            draft.rename(place)
        except OSError:
            if _trouble(place, expected) is not None:  # otherwise the other process succeeded
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return place


def _take_away(place: Path) -> None:
    """Removes an entry of any file type; one that cannot be removed is renamed."""
    import shutil
    import tempfile

    aside = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    place.rename(aside / "damaged")
    shutil.rmtree(aside, ignore_errors=True)


def _write_hashes(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{content_digest(path)} {path.relative_to(folder)}\n" for path in files]
    content = "".join(lines).encode()
    (folder / _HASHES).write_bytes(seal(content) + content)


def _trouble(place: Path, expected: Sequence[str]) -> str | None:
    """Why the entry differs from what was made; None if it does not."""
    name = _HASHES
    try:
        if not (place / name).is_file():
            return f"{name} is {ABSENT}"
        data = (place / name).read_bytes()
        content = data[SEAL_SIZE:]
        if data[:SEAL_SIZE] != seal(content):
            return f"{name} is {DAMAGED}"
        hashes = {name: digest for digest, name in map(_hash_and_name, content.splitlines())}
        for name in dict.fromkeys([*expected, *hashes]):
            if name not in hashes or not (place / name).is_file():
                return f"{name} is {ABSENT}"
            if content_digest(place / name) != hashes[name]:
                return f"{name} is {DAMAGED}"
    except OSError as error:
        return f"{name} cannot be read: {error.strerror or error}"
    return None


def seal(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _hash_and_name(line: bytes) -> tuple[str, str]:
    digest, _, name = line.decode().partition(" ")
    return digest, name


def content_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _cannot_write(error: OSError) -> ToolError:
    return ToolError(
        f"Cannot write to aotc's cache: {error}",
        hint="Set XDG_CACHE_HOME to a folder that can be written.",
    )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds a lock on the folder, which the system releases when this process ends."""
    import fcntl

    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):  # some file systems do not support locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
