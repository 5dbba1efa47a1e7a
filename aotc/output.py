"""Puts files down, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from aotc.errors import InputError
from aotc.processes.record import note_file

_CHUNK = 1 << 20


class NewFile(NamedTuple):
    """A file to be: its bytes, or another file that has them, and is not written to any more."""

    path: Path
    content: bytes | Path
    executable: bool = False


def write_file(path: Path, content: bytes | Path, *, executable: bool = False) -> None:
    """Writes one file, as `write_files` does."""
    write_files([NewFile(path, content, executable)])


def write_files(files: Sequence[NewFile]) -> None:
    """Writes files by way of temporary ones beside them, which are renamed when all are there.

    Folders on the way are made. A symbolic link's target is what is replaced; what is there and
    is no regular file (a device, a pipe) is written to. Raises InputError where a place cannot be
    written: then nothing is changed.
    """
    drafts: list[tuple[NewFile, Path | None]] = []
    try:
        for file in files:
            with told_of(file.path):
                drafts.append((file, _draft(file)))
        for file, draft in drafts:
            with told_of(file.path):
                if draft is not None:
                    draft.replace(file.path.resolve())
                else:
                    with file.path.open("wb") as target:
                        _copy(file.content, target)
    except BaseException:
        for _, draft in drafts:
            if draft is not None:
                draft.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def told_of(path: Path) -> Iterator[None]:
    """Says of which file an error is."""
    try:
        yield
    except OSError as error:
        raise InputError(f"Cannot write '{path}': {error.strerror or error}.") from None


def _draft(file: NewFile) -> Path | None:
    """The temporary file, whole; None for what is written to where it is."""
    if file.path.exists() and not file.path.is_file() and not file.path.is_dir():
        return None
    path = file.path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise InputError(f"Cannot write '{path}': it is a directory.")
    draft = path.parent / f".{path.name}.{os.urandom(4).hex()}"
    note_file(draft)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as target:
            if _link(file.content, draft):
                draft.chmod(_mode(executable=file.executable))
            else:
                _copy(file.content, target)
                os.fchmod(target.fileno(), _mode(executable=file.executable))
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return draft


def _link(content: bytes | Path, draft: Path) -> bool:
    """Whether the draft is the other file now, under one more name: of gigabytes, a copy takes
    long. Not so on another file system."""
    if not isinstance(content, Path):
        return False
    link = draft.with_name(f"{draft.name}.link")
    note_file(link)
    try:
        link.hardlink_to(content)
    except OSError:
        return False
    link.replace(draft)
    return True


def _copy(content: bytes | Path, target: BinaryIO) -> None:
    if isinstance(content, Path):
        with content.open("rb") as source:
            shutil.copyfileobj(source, target, _CHUNK)
    else:
        target.write(content)


def check_writable(folder: Path) -> None:
    """Raises InputError when nothing can be put into `folder`, before work is spent on it.

    The folder itself need not be there yet: then its nearest parent is asked.
    """
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise InputError(f"Cannot write into '{folder}': '{existing}' is not a directory.")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(f"Cannot write into '{folder}': permission denied.")


def check_temporary(environment: Mapping[str, str]) -> None:
    """Raises InputError when TMPDIR names no folder for temporary files: Python would take another,
    and the tools would fail."""
    folder = environment.get("TMPDIR")
    if folder and not (Path(folder).is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise InputError(f"TMPDIR is '{folder}', which is no directory that can be written.")


def _mode(*, executable: bool) -> int:
    """What a new file of this kind gets under the user's umask."""
    mask = os.umask(0)
    os.umask(mask)
    everything = stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO
    plain = everything & ~(stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return (everything if executable else plain) & ~mask
