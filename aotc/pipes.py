"""Files that may be pipes: who is to open one at its other end may never come, and is not waited
for without end."""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from pathlib import Path
from typing import BinaryIO

from aotc.errors import InputError

_PATIENCE = 5.0  # seconds
_STEP = 0.02


def is_special(path: Path) -> bool:
    """Whether it is there, and neither a regular file nor a folder: a pipe, or a device."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def read_file(path: Path) -> bytes:
    """The bytes of a file or a pipe. Raises OSError; InputError for a pipe that no process opens
    to write within some seconds."""
    if not is_special(path):
        return path.read_bytes()
    # Unbuffered: what a look at the pipe reads is the beginning.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", 0) as file:
        first = b""
        if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            first = _await_writer(file.fileno(), path)
        os.set_blocking(file.fileno(), True)
        return first + file.read()


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
