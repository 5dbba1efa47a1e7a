"""Signals: their names, waiting for them, and `uninterrupted`, which delays Ctrl-C for a block."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


# prctl(2).
_PR_SET_PDEATHSIG = 1
# Size of a sigset_t in glibc and in musl.
_SIGSET_BYTES = 128


def end_with_parent(number: int) -> None:
    """Requests the signal for this process when its parent ends, for any reason."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def signal_name(number: int) -> str:
    """`SIGSEGV`; `signal 40` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def wait_for_signal(numbers: Iterable[int], seconds: float) -> int | None:
    """Accepts one of these blocked signals; None if none arrives within `seconds`, or if this
    process was stopped (SIGSTOP) and continued.

    `signal.sigtimedwait` returns a signal that was not sent if this process was stopped for longer
    than `seconds`: CPython then reads a structure that it has not initialized.
    """
    libc = ctypes.CDLL(None)
    waited = ctypes.create_string_buffer(_SIGSET_BYTES)
    libc.sigemptyset(waited)
    for number in numbers:
        libc.sigaddset(waited, ctypes.c_int(number))
    whole = int(seconds)
    time = _Timespec(whole, int((seconds - whole) * 1e9))
    found: int = libc.sigtimedwait(waited, None, ctypes.byref(time))
    return found if found > 0 else None


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delays interrupts of the main thread until the end of the block.

    Python calls a signal handler between any two bytecode instructions of the main thread, also
    between the start of a process and the assignment that records it, so that the process could
    not be ended. Only Python handlers that are installed at the start are delayed. In other
    threads, which signals do not interrupt, it has no effect.

    >>> with uninterrupted():
    ...     process = subprocess.Popen(command)
    ...     live.add(process)
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: dict[int, FrameType | None] = {}
    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
    is_over = False

    def remember(number: int, frame: FrameType | None) -> None:
        if is_over:  # called after the block, before the handler was restored
            handlers[number](number, frame)
        else:
            came.setdefault(number, frame)

    try:
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                handlers[number] = handler
                signal.signal(number, remember)
        yield
    finally:
        is_over = True
        for held, handler in handlers.items():
            signal.signal(held, handler)
        for held, frame in came.items():
            handlers[held](held, frame)
