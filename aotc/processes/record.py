"""The record of a command's processes, for when they are killed: unfinished files and last step.

The record is an in-memory file that the supervisor and all processes under it share. Each of them
appends to it, and the supervisor reads it when they have ended.
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
    """What a process is doing: "the stage 'mlir' of x.mlir". A crash while it reads the input is
    attributed to the input, any other crash is a bug. A pass of the user's pipeline (`is_pass`) has
    a time limit."""

    name: str
    reads_input: bool = False
    is_pass: bool = False


class Record:
    """The record with the given file descriptor; by default a new one."""

    def __init__(self, handle: int | None = None) -> None:
        self.handle = os.memfd_create("aotc-record") if handle is None else handle
        if handle is None:
            import fcntl

            # Several processes write to it: O_APPEND makes each write atomic, at the end.
            fcntl.fcntl(self.handle, fcntl.F_SETFL, os.O_APPEND)

    def _append(self, kind: bytes, content: bytes) -> None:
        os.write(self.handle, kind + content.replace(_END, b"") + _END)

    def add_file(self, path: str) -> None:
        self._append(_FILE, os.path.abspath(path).encode(errors="surrogateescape"))  # noqa: PTH100

    def add_step(self, step: Step) -> None:
        kind = _PASS if step.is_pass else _READING if step.reads_input else _WORK
        self._append(kind, step.name.encode(errors="replace"))

    def size(self) -> int:
        """The size in bytes, which grows with each entry."""
        return os.fstat(self.handle).st_size

    def _lines(self, kinds: bytes) -> list[str]:
        """The entries of the given kinds; each kind is one letter."""
        content = os.pread(self.handle, os.fstat(self.handle).st_size, 0)
        return [os.fsdecode(line) for line in content.split(_END)[:-1] if line[0] in kinds]

    def last_step(self) -> Step | None:
        """The last recorded step, if any."""
        lines = self._lines(_READING + _WORK + _PASS)
        if not lines:
            return None
        kind = lines[-1][0].encode()
        return Step(lines[-1][1:], reads_input=kind == _READING, is_pass=kind == _PASS)

    def remove_files(self) -> None:
        """Removes the recorded files and folders that still exist."""
        for path in (line[1:] for line in self._lines(_FILE)):
            if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(path)  # noqa: PTH108


# The record of this process, if it has a supervisor, and the step that it recorded last.
_record: Record | None = None
_latest: Step | None = None


def use_record(record: Record) -> None:
    global _record
    _record = record


def record_handle() -> int | None:
    """The file descriptor of the record, to pass to a new process; None if there is no record."""
    return None if _record is None else _record.handle


def note_file(path: str | Path) -> None:
    """Records a file or folder that must not outlive the command, before it is created."""
    if _record is not None:
        _record.add_file(str(path))


def note_step(step: Step) -> None:
    """Records what this process is doing."""
    global _latest
    _latest = step
    if _record is not None:
        _record.add_step(step)


@contextlib.contextmanager
def running_pass(name: str) -> Iterator[None]:
    """Records that this process runs a pass of the user's pipeline."""
    before = _latest
    note_step(Step(f"the pass '{name}'", is_pass=True))
    try:
        yield
    finally:
        note_step(before or Step(f"what follows the pass '{name}'"))


@contextlib.contextmanager
def temporary_folder(parent: str | Path | None = None) -> Iterator[Path]:
    """A folder for intermediates, by default in the folder for temporary files. It is removed at
    the end, also if this process is killed."""
    place = Path(parent or tempfile.gettempdir()) / f"aotc-{os.urandom(8).hex()}"
    note_file(place)
    place.mkdir(mode=0o700)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
