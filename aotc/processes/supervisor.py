"""`supervised`: runs the command in a child process, and handles crashes and interrupts of it.

The parent has no threads, loads nothing and only waits, so it handles an interrupt immediately,
also while MLIR is in a pass, which cannot be interrupted. It then kills all processes of the
command, removes their unfinished files and exits with 130. A child that crashes, or uses too much
memory, becomes an error.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

from aotc.processes.memory import (
    available_memory,
    gibibytes,
    processor_seconds,
    resident_memory,
)
from aotc.processes.record import Record, Step, use_record
from aotc.processes.signals import end_with_parent, signal_name, wait_for_signal

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_INTERRUPTED = 130
# prctl(2).
_PR_SET_CHILD_SUBREAPER = 36
# Interval for checking the child's memory, in seconds.
_LOOK = 0.2
# Time that processes get to end after they were told to, in seconds.
_REAP = 0.1
# The fraction of the available memory that is left for the rest of the machine.
_SPARED = 0.1
# The variable for the processor time, in seconds, of a pass of the user's pipeline (0: unlimited),
# and its default.
# is if the environment does not say.
_PASS_SECONDS = "AOTC_PASS_SECONDS"
_DEFAULT_PASS_SECONDS = "600"


def supervised(work: Callable[[], int], mask: Iterable[int]) -> NoReturn:
    """Runs `work` in a child, with the given signal mask, and exits with its result."""
    _claim_streams()
    pass_seconds = _pass_seconds()
    # Signals that are ignored (nohup, a shell's background job) stay ignored.
    interrupts = [one for one in _INTERRUPTS if signal.getsignal(one) is not signal.SIG_IGN]
    heard = {*interrupts, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, heard)
    record = Record()
    use_record(record)
    # Orphaned tools become children of this process, which kills them, too.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            end_with_parent(signal.SIGTERM)
            _hear_our_parent_alone(interrupts)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            if os.getppid() == parent:
                code = work()
        finally:
            os._exit(code)
    os._exit(_wait(child, heard, record, pass_seconds))


def _pass_seconds() -> int:
    text = os.environ.get(_PASS_SECONDS, _DEFAULT_PASS_SECONDS)
    if not text.isdecimal():
        from aotc.errors import InputError

        os._exit(_tell(InputError(f"{_PASS_SECONDS} is '{text}'; expected a number of seconds.")))
    return int(text)


def _claim_streams() -> None:
    """Replaces closed standard streams, so that files that are opened later do not get their
    descriptors. Writing to standard output then fails; output to stderr is lost."""
    # In this order: each gets the lowest free descriptor.
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115


def _hear_our_parent_alone(interrupts: Iterable[signal.Signals]) -> None:
    """Ignores the terminal's Ctrl-C, which goes to all processes. It does so with a handler that
    does nothing: unlike an ignored signal, it is not inherited by programs that are started."""
    for one in interrupts:
        if one is not signal.SIGTERM:
            signal.signal(one, lambda number, frame: None)


def _wait(child: int, heard: set[signal.Signals], record: Record, pass_seconds: int) -> int:
    """Waits for the child, or for a signal to end it; returns the command's exit code."""
    limit = int(available_memory() * (1 - _SPARED))
    clock = _PassClock(child, record, pass_seconds)
    while True:
        came = wait_for_signal(heard, _LOOK)
        if came is None:
            if limit and resident_memory(child) > limit:
                _end_all(child)
                record.remove_files()
                return _tell_of_memory(record.last_step(), limit)
            if clock.is_over():
                step = record.last_step()
                _end_all(child)
                record.remove_files()
                return _tell_of_pass(step, clock.limit)
        elif came != signal.SIGCHLD:
            # If the command has just ended, its outputs are kept.
            ended, status = os.waitpid(child, os.WNOHANG)
            _end_all(None if ended else child)
            if not (ended and os.WIFEXITED(status)):
                record.remove_files()
            return _tell_of_interrupt()
        else:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended and os.WIFEXITED(status):
                _reap()
                # A signal after the outputs were written still counts: `aotc build && ...` ends.
                if signal.sigpending() & (heard - {signal.SIGCHLD}):
                    return _tell_of_interrupt()
                return os.WEXITSTATUS(status)
            if ended:
                _end_all(None)
                record.remove_files()
                return _tell_of_crash(record.last_step(), os.WTERMSIG(status))


class _PassClock:
    """Measures how long the child has been in one pass of the user's pipeline."""

    def __init__(self, child: int, record: Record, limit: int) -> None:
        self._child = child
        self._record = record
        self.limit = limit
        self._size = -1
        self._start = 0.0

    def is_over(self) -> bool:
        size, now = self._record.size(), processor_seconds(self._child)
        if size != self._size:
            self._size, self._start = size, now
        if self.limit == 0 or now - self._start < self.limit:
            return False
        step = self._record.last_step()
        return step is not None and step.is_pass


def _end_all(child: int | None) -> None:
    """Kills the command's process, unless it has ended, and all other children of this process,
    including those that are reparented to it when their parents end."""
    if child is not None:
        os.kill(child, signal.SIGKILL)
    while True:
        for place in Path("/proc/self/task").glob("*/children"):
            for word in place.read_text().split():
                os.kill(int(word), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _reap() -> None:
    """Waits for the fork server, which the child has told to end: without an init process nothing
    else would. Programs that the user's code left running are not waited for."""
    until = time.monotonic() + _REAP
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < until:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                wait_for_signal([signal.SIGCHLD], max(0.0, until - time.monotonic()))


def _tell_of_interrupt() -> int:
    # The terminal shows ^C on the current line.
    print("\naotc: interrupted", file=sys.stderr, flush=True)
    return _INTERRUPTED


def _tell_of_memory(step: Step | None, limit: int) -> int:
    from aotc.errors import InputError

    return _tell(
        InputError(
            f"{_while(step)} needs more memory than the {gibibytes(limit)} that this machine has "
            "left for it."
        )
    )


def _tell_of_pass(step: Step | None, seconds: int) -> int:
    from aotc.errors import InputError

    name = "a pass" if step is None else step.name
    return _tell(
        InputError(
            f"The build was in {name} for {seconds} s of processor time: it may never end.",
            hint=f"{_PASS_SECONDS}=N gives each pass N seconds, and 0 any time.",
        )
    )


def _tell_of_crash(step: Step | None, number: int) -> int:
    from aotc.errors import InputError, InternalError

    message = f"{_while(step)} was ended by {signal_name(number)}"
    if step is not None and step.reads_input:
        return _tell(InputError(f"{message}: MLIR's reader does not survive this input."))
    return _tell(InternalError(f"{message}.", hint="Please report this, with the input."))


def _while(step: Step | None) -> str:
    return f"The build ({step.name})" if step else "aotc"


def _tell(error: Exception) -> int:
    from aotc.errors import AotcError

    assert isinstance(error, AotcError)
    print(error.text(), file=sys.stderr, flush=True)
    return error.exit_code
