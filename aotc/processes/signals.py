"""Signals: their names, and `uninterrupted`: a few lines that Ctrl-C cannot cut in two."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


# prctl(2).
_PR_SET_PDEATHSIG = 1


def end_with_parent(number: int) -> None:
    """This process gets the signal when its parent ends, however that ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def signal_name(number: int) -> str:
    """`SIGSEGV`; `signal 40` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """What interrupts the main thread in here does so at the end of it.

    Python calls a signal's handler between any two steps of the main thread, also between the
    start of a process and the assignment that remembers it: nobody could end it then. Only
    handlers of Python's wait, those that the program has now. In other threads, which
    signals do not interrupt, it does nothing.

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
        if is_over:  # and not replaced yet
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
