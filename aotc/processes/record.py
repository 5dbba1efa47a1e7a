"""What must be known of a process when it is killed: its unfinished files, and what it was doing.

The record is a file in memory that the supervisor and all the processes under it share. Each of
them appends to it, and the supervisor reads it when they have ended.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_END = b"\0"
_FILE, _READING, _WORK, _PASS = b"f", b"r", b"w", b"p"


class Step(NamedTuple):
    """What a process does: "the stage 'mlir' of x.mlir". A crash while it reads the input is the
    input's fault, and else a bug. A pass (`is_pass`) of the user's pipeline has a limit."""

    name: str
    reads_input: bool = False
    is_pass: bool = False


class Record:
    """The record with the given file descriptor; a new one by default."""

    def __init__(self, handle: int | None = None) -> None:
        self.handle = os.memfd_create("aotc-record") if handle is None else handle
        if handle is None:
            import fcntl

            # Several processes write to it: each write goes to the end, whole.
            fcntl.fcntl(self.handle, fcntl.F_SETFL, os.O_APPEND)

    def _append(self, kind: bytes, content: bytes) -> None:
        os.write(self.handle, kind + content.replace(_END, b"") + _END)

    def add_file(self, path: str) -> None:
        self._append(_FILE, os.path.abspath(path).encode(errors="surrogateescape"))  # noqa: PTH100

    def add_step(self, step: Step) -> None:
        kind = _PASS if step.is_pass else _READING if step.reads_input else _WORK
        self._append(kind, step.name.encode(errors="replace"))

    def size(self) -> int:
        """What is larger when something was noted."""
        return os.fstat(self.handle).st_size

    def _lines(self, kinds: bytes) -> list[str]:
        """Those of one of the kinds, which are a letter each."""
        content = os.pread(self.handle, os.fstat(self.handle).st_size, 0)
        return [os.fsdecode(line) for line in content.split(_END)[:-1] if line[0] in kinds]

    def last_step(self) -> Step | None:
        """What was done last, if anything was noted."""
        lines = self._lines(_READING + _WORK + _PASS)
        if not lines:
            return None
        kind = lines[-1][0].encode()
        return Step(lines[-1][1:], reads_input=kind == _READING, is_pass=kind == _PASS)

    def remove_files(self) -> None:
        """Removes the files and folders that were noted, and are still there."""
        for path in (line[1:] for line in self._lines(_FILE)):
            if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(path)  # noqa: PTH108


# This process's, if it has a supervisor, and what it noted last.
_record: Record | None = None
_latest: Step | None = None


def use_record(record: Record) -> None:
    global _record
    _record = record


def record_handle() -> int | None:
    """The file descriptor of the record, for a process to be started; None if there is none."""
    return None if _record is None else _record.handle


def note_file(path: str | Path) -> None:
    """Notes a file or folder that must not outlive the command; before it is made."""
    if _record is not None:
        _record.add_file(str(path))


def note_step(step: Step) -> None:
    """Notes what this process does now."""
    global _latest
    _latest = step
    if _record is not None:
        _record.add_step(step)


@contextlib.contextmanager
def running_pass(name: str) -> Iterator[None]:
    """Notes that this process runs a pass of the user's pipeline."""
    before = _latest
    note_step(Step(f"the pass '{name}'", is_pass=True))
    try:
        yield
    finally:
        note_step(before or Step(f"what follows the pass '{name}'"))


@contextlib.contextmanager
def temporary_folder(parent: str | Path | None = None) -> Iterator[Path]:
    """A folder of intermediates, in the folder for temporary files by default. It is removed at
    the end, also when this process is killed."""
    place = Path(parent or tempfile.gettempdir()) / f"aotc-{os.urandom(8).hex()}"
    note_file(place)
    place.mkdir(mode=0o700)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
