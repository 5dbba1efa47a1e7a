"""Files that may be pipes: who is to open one at its other end may never come, and is not waited
for without end."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
import time
from pathlib import Path
from typing import IO, BinaryIO

from aotc.errors import InputError

_PATIENCE = 5.0  # seconds
_STEP = 0.02
# Of what is no regular file, and may have no end: /dev/zero, or a process that writes for ever.
LARGEST_STREAM = 4 << 30
# An input is in memory as bytes and as what is made of them.
_COPIES = 2
_CHUNK = 1 << 20
# There is always room for it.
_SMALL = 16 << 20


def is_special(path: Path) -> bool:
    """Whether it is there, and neither a regular file nor a folder: a pipe, or a device."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def read_file(path: Path) -> bytes:
    """The bytes of a file or a pipe. Raises OSError; InputError for a pipe that no process opens
    to write within some seconds, and for more bytes than memory has room for."""
    if not is_special(path):
        size = path.stat().st_size
        if size > _SMALL and size > (most := _room()):
            raise InputError(
                f"Cannot read '{path}': it has {_gibibytes(size)}; memory has room for an input of "
                f"{_gibibytes(most)}."
            )
        return path.read_bytes()
    # Unbuffered: what a look at the pipe reads is the beginning.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", 0) as file:
        first = b""
        if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            first = _await_writer(file.fileno(), path)
        os.set_blocking(file.fileno(), True)
        return _read_stream(file, f"'{path}'", first)


def read_stdin() -> bytes:
    """The bytes of standard input. Raises InputError for more of them than are taken."""
    return _read_stream(sys.stdin.buffer, "standard input")


def _read_stream(file: IO[bytes], name: str, first: bytes = b"") -> bytes:
    """All that comes, after `first`; what has no end is not waited for until memory is full."""
    most = min(LARGEST_STREAM, _room())
    found = io.BytesIO()
    found.write(first)
    while chunk := file.read(_CHUNK):
        if found.write(chunk) and found.tell() > most:
            raise InputError(
                f"Cannot read {name}: it has more than {_gibibytes(most)}, and no end; aotc reads "
                "more of regular files alone."
            )
    return found.getvalue()


def _room() -> int:
    """For how many bytes of an input memory has room."""
    from aotc.processes.memory import available_memory

    return available_memory() // _COPIES


def _gibibytes(size: int) -> str:
    from aotc.processes.memory import gibibytes

    return gibibytes(size)


def open_to_write(path: Path) -> BinaryIO:
    """A device or a pipe, opened; likewise, for a pipe that no process opens to read."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > end:
                raise InputError(
                    f"Cannot write '{path}': it is a pipe that no process reads from."
                ) from None
            time.sleep(_STEP)
            continue
        os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "wb")


def _await_writer(descriptor: int, path: Path) -> bytes:
    """Waits for a process that writes to the pipe; what it read to know that."""
    end = time.monotonic() + _PATIENCE
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while time.monotonic() < end:
        try:
            first = os.read(descriptor, 1)
        except BlockingIOError:
            return b""  # it may be slow
        if first:
            return first
        if any(not event & select.POLLIN for _, event in poll.poll(1000 * _STEP)):
            return b""  # it has been there, and has closed its end
    raise InputError(f"Cannot read '{path}': it is a pipe that no process writes to.")
