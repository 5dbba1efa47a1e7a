"""Reads and writes files that may be pipes, with a time limit for opening a pipe that no other
process has open."""

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
# The limit for anything but a regular file, which may never end: /dev/zero, or an endless writer.
LARGEST_STREAM = 4 << 30
# Memory for an input, as a multiple of its size: the bytes and what is made from them.
_COPIES = 2
_CHUNK = 1 << 20
# An input of this size is read without checking the available memory.
_SMALL = 16 << 20


def is_special(path: Path) -> bool:
    """Whether the path exists and is neither a regular file nor a folder: a pipe, or a device."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def read_file(path: Path) -> bytes:
    """The bytes of a file or a pipe. Raises OSError; raises InputError if no process opens a pipe
    for writing within some seconds, and if the memory cannot hold the bytes."""
    if not is_special(path):
        size = path.stat().st_size
        if size > _SMALL and size > (most := _room()):
            raise InputError(
                f"Cannot read '{path}': it has {_gibibytes(size)}; memory has room for an input of "
                f"{_gibibytes(most)}."
            )
        return path.read_bytes()
    # Unbuffered, because a byte that is read to test the pipe is the beginning of the content.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", 0) as file:
        first = b""
        if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            first = _await_writer(file.fileno(), path)
        os.set_blocking(file.fileno(), True)
        return _read_stream(file, f"'{path}'", first)


def read_text(path: Path, what: str) -> str:
    """The text of a file or a pipe. Raises InputError, which calls it `what`, if it cannot be
    read."""
    try:
        return read_file(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"Cannot read {what}: {reason}.") from None


def read_stdin() -> bytes:
    """The bytes of standard input. Raises InputError if they exceed the limit."""
    return _read_stream(sys.stdin.buffer, "standard input")


def _read_stream(file: IO[bytes], name: str, first: bytes = b"") -> bytes:
    """All bytes, after `first`. Raises InputError at a limit, before memory is full."""
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
    """The largest input, in bytes, that fits into the available memory."""
    from aotc.processes.memory import available_memory

    return available_memory() // _COPIES


def _gibibytes(size: int) -> str:
    from aotc.processes.memory import gibibytes

    return gibibytes(size)


def open_to_write(path: Path) -> BinaryIO:
    """Opens a device or a pipe. Raises InputError for a pipe that no process opens for reading."""
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
    """Waits until a process writes to the pipe; returns the bytes that were read to detect it."""
    end = time.monotonic() + _PATIENCE
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while time.monotonic() < end:
        try:
            first = os.read(descriptor, 1)
        except BlockingIOError:
            return b""  # a writer is there, but has not written yet
        if first:
            return first
        if any(not event & select.POLLIN for _, event in poll.poll(1000 * _STEP)):
            return b""  # a writer has closed its end without writing
    raise InputError(f"Cannot read '{path}': it is a pipe that no process writes to.")
