"""The command `aotc`, and `python -m aotc`: the command line, under a supervisor."""

from __future__ import annotations

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line and exits: 0, or as `aotc.errors` says."""
    # Before anything else is loaded: the supervisor hears what came until then.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    from aotc.processes.supervisor import supervised

    supervised(_run, mask)


def _run() -> int:
    from aotc.cli import main

    return main()


if __name__ == "__main__":
    main()
