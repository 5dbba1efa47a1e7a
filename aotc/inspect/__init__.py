"""The contents of a built file: `inspect` returns a `Report` on an executable, library or image."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator
from pathlib import Path

from aotc.errors import InputError
from aotc.images.view import View
from aotc.inspect.report import Report, report_of

__all__ = ["Report", "inspect", "opened"]


def inspect(path: Path) -> Report:
    """Reads the file. Raises InputError if it cannot be read, or has an unknown format."""
    with opened(path) as view:
        return report_of(view)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[View]:
    """The content of a file, mapped into memory: only the parts that are accessed are read."""
    try:
        if not path.is_file():
            path.stat()
            raise InputError(f"'{path}' is no file that can be inspected.")
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"Cannot read '{path}': {error.strerror or error}.") from None
    with file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise InputError(f"'{path}' is empty.") from None
        except OSError as error:
            raise InputError(f"Cannot read '{path}': {error.strerror or error}.") from None
        with data:
            yield View(data, path.name)
