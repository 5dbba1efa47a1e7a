"""Writes files atomically."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from aotc.errors import InputError
from aotc.pipes import is_special, open_to_write
from aotc.processes.record import note_file

_CHUNK = 1 << 20


class NewFile(NamedTuple):
    """A file to write: its bytes, or the path of a file with them that is no longer modified."""

    path: Path
    content: bytes | Path
    executable: bool = False


def write_file(path: Path, content: bytes | Path, *, executable: bool = False) -> None:
    """Writes one file, as `write_files` does."""
    write_files([NewFile(path, content, executable)])


def write_files(files: Sequence[NewFile]) -> None:
    """Writes files to temporary files beside them, and renames these when all are complete.

    Parent folders are created, except those in the target of a symbolic link; the target of a link
    is replaced, not the link. An existing file that is not regular (a device, a pipe) is written
    to directly. Raises InputError if a path cannot be written; then nothing is changed.
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
                    with open_to_write(file.path) as target:
                        _copy(file.content, target)
    except BaseException:
        for _, draft in drafts:
            if draft is not None:
                draft.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def told_of(path: Path) -> Iterator[None]:
    """Converts an OSError to an InputError that names the file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"Cannot write '{path}': {error.strerror or error}.") from None


def _draft(file: NewFile) -> Path | None:
    """The complete temporary file; None for a device or pipe, which is written to directly."""
    if is_special(file.path):
        return None
    check_links(file.path)
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
    """Whether the draft is now a hard link to the content's file, which is faster than a copy for
    gigabytes. False on another file system."""
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


def check_links(path: Path) -> None:
    """Raises InputError if the file is, or is in, a symbolic link whose target folder does not
    exist: no folder is created in the target of a link."""
    _check_folder_links(path.parent)
    if path.is_symlink():
        target = path.resolve()
        if not target.parent.is_dir():
            raise InputError(
                f"Cannot write '{path}': it is a link to '{target}', whose folder is not there."
            )


def _check_folder_links(folder: Path) -> None:
    for link in (folder, *folder.parents):
        if link.is_symlink() and not link.exists():
            raise InputError(
                f"Cannot write into '{folder}': '{link}' is a link to '{link.resolve()}', which is "
                "not there."
            )


def check_writable(folder: Path) -> None:
    """Raises InputError if `folder` is not writable, before a build starts.

    If the folder does not exist, its nearest existing parent is checked.
    """
    _check_folder_links(folder)
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise InputError(f"Cannot write into '{folder}': '{existing}' is not a directory.")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(f"Cannot write into '{folder}': permission denied.")


def check_temporary(environment: Mapping[str, str]) -> None:
    """Raises InputError if TMPDIR is not a usable folder for temporary files: Python would select
    another one, and the tools would fail."""
    folder = environment.get("TMPDIR")
    if folder and not (Path(folder).is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise InputError(f"TMPDIR is '{folder}', which is no directory that can be written.")


def _mode(*, executable: bool) -> int:
    """The mode of a new file of this kind under the user's umask."""
    mask = os.umask(0)
    os.umask(mask)
    everything = stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO
    plain = everything & ~(stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return (everything if executable else plain) & ~mask
