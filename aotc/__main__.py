"""The command `aotc` and `python -m aotc`: runs the command line under a supervisor."""

from __future__ import annotations

import os
import resource
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_USUAL_STACK = 8 << 20  # bytes, on Linux


def main() -> NoReturn:
    """Runs the command line and exits with 0, or with an exit code of `aotc.errors`."""
    _take_names_for_utf8()
    _take_usual_stack()
    # Block the signals before anything else is loaded: the supervisor then receives those that
    # arrived in the meantime.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    from aotc.processes.supervisor import supervised

    supervised(_run, mask)


def _take_names_for_utf8() -> None:
    """Restarts Python in UTF-8 mode if it decodes file names as ASCII (`LC_ALL=C PYTHONUTF8=0`),
    because aotc writes file names into UTF-8 text."""
    if sys.getfilesystemencoding() == "ascii":
        os.environ["PYTHONUTF8"] = "1"  # for worker processes, too
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _take_usual_stack() -> None:
    """Restarts Python if the limit of the stack is lower than usual and could be raised."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = _USUAL_STACK if hard == resource.RLIM_INFINITY else min(_USUAL_STACK, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))
    # Threads have the limit with which the process was started.
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _run() -> int:
    from aotc.cli import main

    return main()


if __name__ == "__main__":
    main()
