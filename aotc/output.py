"""Puts files down, whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from aotc.errors import InputError


def write_file(path: Path, content: bytes, *, executable: bool = False) -> None:
    """Writes `content` to `path` by way of a temporary file beside it, and a rename.

    Folders on the way are made. A symbolic link's target is what is replaced; what is there and
    is no regular file (a device, a pipe) is written to. Raises InputError where the place cannot
    be written.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(content)
            return
        path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise InputError(f"Cannot write '{path}': it is a directory.")
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), _mode(executable=executable))
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"Cannot write '{path}': {error.strerror or error}.") from None


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


def _mode(*, executable: bool) -> int:
    """What a new file of this kind gets under the user's umask."""
    mask = os.umask(0)
    os.umask(mask)
    everything = stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO
    plain = everything & ~(stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return (everything if executable else plain) & ~mask
