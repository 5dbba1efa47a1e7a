"""Tasks for the fork server, which end in all ways that there are."""

from __future__ import annotations

import os
import signal
import sys
import time

from aotc.errors import InputError
from aotc.processes.fork_server import Progress, task_progress


def _progress() -> Progress:
    progress = task_progress()
    assert progress is not None
    return progress


def reverse(given: memoryview) -> bytes:
    return bytes(given)[::-1]


def refuse(given: memoryview) -> bytes:
    raise InputError("this is wrong", hint="write it otherwise")


def fail(given: memoryview) -> bytes:
    raise KeyError("nothing of that name")


def crash(given: memoryview) -> bytes:
    _progress().leave(b"the module")
    _progress().tell("the third node")
    print("last words", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
    return b""


def spin(given: memoryview) -> bytes:
    """Tells of progress as often as it is given, and then no more."""
    for number in range(int(bytes(given))):
        _progress().tell(f"step {number}")
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
    _progress().tell("an endless loop")
    while True:
        pass


def grow(given: memoryview) -> bytes:
    parts = []
    while True:
        parts.append(b"x" * (1 << 24))


def sleep(given: memoryview) -> bytes:
    time.sleep(600)
    return b""
