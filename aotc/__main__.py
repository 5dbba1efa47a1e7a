"""The command `aotc`, and `python -m aotc`: the command line, under a supervisor."""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line and exits: 0, or as `aotc.errors` says."""
    _take_names_for_utf8()
    # Before anything else is loaded: the supervisor hears what came until then.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    from aotc.processes.supervisor import supervised

    supervised(_run, mask)


def _take_names_for_utf8() -> None:
    """Starts anew where Python takes the names of files for ASCII (`LC_ALL=C PYTHONUTF8=0`): what
    aotc writes them into is UTF-8."""
    if sys.getfilesystemencoding() == "ascii":
        os.environ["PYTHONUTF8"] = "1"  # for our workers, too
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _run() -> int:
    from aotc.cli import main

    return main()


if __name__ == "__main__":
    main()
