"""`Store`: blobs by their SHA-256 and results by their action's key, as files in one folder.

Files are written atomically, by a rename, and checked by their hashes when they are read. Other
processes, a kill, a full disk or a damaged file cause misses, never errors.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from aotc.cache.result import Digest
from aotc.cache_folder import ABSENT, DAMAGED, SEAL_SIZE, seal

# As specified by https://bford.info/cachedir/.
_TAG = "CACHEDIR.TAG"
_TAG_TEXT = "Signature: 8a477f597d28d172789f06886806bc55\n# What aotc built: it may be removed.\n"


class Miss(Exception):  # noqa: N818 (not an error)
    """A file is missing or damaged: `reason` says which."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Store:
    """The files under `root`. Thread-safe.

    `trouble` is the first reason why something could not be stored; after it nothing is stored.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.trouble: str | None = None
        self.bytes_added = 0

    # --- blobs

    def read_blob(self, digest: Digest) -> bytes:
        """The blob. Raises Miss; a damaged file is removed."""
        if digest.size == 0:
            return b""
        place = self._place("cas", digest.hash)
        data = _read(place)
        if not digest.is_of(data):
            _remove(place)
            raise Miss(DAMAGED)
        return data

    def write_blob(self, data: bytes) -> Digest:
        """Stores the bytes, if possible."""
        digest = Digest.of(data)
        if digest.size:
            place = self._place("cas", digest.hash)
            if not _is_there(place, digest.size):
                self._keep(place, data)
        return digest

    # --- results, by key

    def read_result(self, key: str) -> bytes:
        """The result. Raises Miss; a damaged file is removed."""
        return self.read_sealed(self._place("ac", key))

    def write_result(self, key: str, data: bytes) -> None:
        self._keep(self._place("ac", key), seal(data) + data)

    def remove_result(self, key: str) -> None:
        """Removes a result some of whose blobs are missing."""
        _remove(self._place("ac", key))

    def touch(self, key: str) -> None:
        """Marks a result as used: `trim` compares the times of the files."""
        with contextlib.suppress(OSError):
            os.utime(self._place("ac", key))

    # --- other small files: notes, whose loss does not matter

    def read_sealed(self, place: Path) -> bytes:
        """The content of a file that `write_sealed` wrote. Raises Miss; removes a damaged one."""
        data = _read(place)
        content = data[SEAL_SIZE:]
        if data[:SEAL_SIZE] != seal(content):
            _remove(place)
            raise Miss(DAMAGED)
        return content

    def write_sealed(self, place: Path, content: bytes) -> None:
        with contextlib.suppress(OSError):
            self._write(place, seal(content) + content)

    def append(self, name: str, line: bytes) -> None:
        """Appends a line to a file of the folder."""
        with contextlib.suppress(OSError), (self.root / name).open("ab") as file:
            file.write(line)

    def _place(self, part: str, name: str) -> Path:
        return self.root / part / name[:2] / name

    def _make(self) -> None:
        """Creates the folder with the tag by which backups skip it and `is_ours` detects it."""
        (self.root / "tmp").mkdir(parents=True, exist_ok=True)
        (self.root / _TAG).write_text(_TAG_TEXT)

    @property
    def is_ours(self) -> bool:
        """Whether the folder is a cache of aotc."""
        try:
            return (self.root / _TAG).read_text() == _TAG_TEXT
        except (OSError, UnicodeDecodeError):
            return False

    def _keep(self, place: Path, data: bytes) -> None:
        if self.trouble is not None:
            return
        try:
            self._write(place, data)
        except OSError as error:
            self.trouble = error.strerror or str(error)

    def _write(self, place: Path, data: bytes) -> None:
        """Writes a file. Raises OSError, in which case no part of the file remains."""
        draft = self.root / "tmp" / f"{os.getpid()}-{os.urandom(8).hex()}"
        try:
            try:
                file = draft.open("xb")
            except FileNotFoundError:
                self._make()
                file = draft.open("xb")
            with file:
                file.write(data)
            place.parent.mkdir(parents=True, exist_ok=True)
            draft.replace(place)
        except BaseException:
            _remove(draft)
            raise
        self.bytes_added += len(data)


def _read(place: Path) -> bytes:
    try:
        # If the path is a pipe, it is opened without waiting and reads as empty.
        with open(
            place, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)
        ) as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        raise Miss(ABSENT) from None
    except OSError as error:
        raise Miss(f"cannot be read: {error.strerror or error}") from None


def _is_there(place: Path, size: int) -> bool:
    """Whether the file exists; if so, updates its time, so that `trim` keeps it."""
    try:
        if place.stat().st_size != size:
            return False
        os.utime(place)
    except OSError:
        # Owned by another user, or just removed.
        return place.exists()
    return True


def _remove(place: Path) -> None:
    with contextlib.suppress(OSError):
        place.unlink()
