"""The output of a command of many builds while it runs: their messages, and what runs now."""

from __future__ import annotations

import sys
from typing import Any

from aotc.errors import EXIT_OK
from aotc.many.job import Ended, Job

_REFRESHES = 8  # a second
_SPINNER = 2  # columns


class Reporter:
    """Prints the output of the builds, complete and in the order of the inputs; counts results.

    Warnings, and the output of --explain and --time-report, are printed as soon as all earlier
    inputs have ended. The message of a failure is printed at the end, in the summary. With `lines`
    (-v), the name of each input precedes its output.
    """

    def __init__(self, jobs: list[Job], *, lines: bool, live: bool) -> None:
        self._jobs = jobs
        self._lines = lines
        self._live = Live(jobs) if live else None
        self._waiting: dict[int, Ended] = {}
        self._told = 0

    def started(self, number: int) -> None:
        if self._live:
            self._live.show(number, "starts")

    def stage(self, number: int, name: str) -> None:
        if self._live:
            self._live.show(number, name)

    def ended(self, number: int, result: Ended) -> None:
        if self._live:
            self._live.end(number, result)
        self._waiting[number] = result
        while self._told in self._waiting:
            self._tell(self._told, self._waiting.pop(self._told))
            self._told += 1

    def close(self) -> None:
        """Erases the progress from the terminal, and prints the remaining output."""
        if self._live:
            self._live.close()
        for number in sorted(self._waiting):
            self._tell(number, self._waiting.pop(number))

    def _tell(self, number: int, result: Ended) -> None:
        if self._lines:
            how = "" if result.code == EXIT_OK else ": failed"
            place = f"[{number + 1}/{len(self._jobs)}]"
            print(f"{place} {self._jobs[number].title}{how}", file=sys.stderr)
        sys.stdout.write(result.stdout)
        sys.stdout.flush()
        sys.stderr.write(result.stderr)
        sys.stderr.flush()


class Live:
    """A line of the terminal with the number of completed jobs and what runs now; it is erased."""

    def __init__(self, jobs: list[Job]) -> None:
        from rich.console import Console
        from rich.status import Status

        self._jobs = jobs
        self._running: dict[int, str] = {}
        self._ended = self._failed = 0
        self._console = Console(stderr=True)
        self._status = Status(self._text(), console=self._console, refresh_per_second=_REFRESHES)
        self._status.start()

    def show(self, number: int, stage: str) -> None:
        self._running[number] = stage
        self._status.update(self._text())

    def end(self, number: int, result: Ended) -> None:
        self._running.pop(number, None)
        self._ended += 1
        self._failed += result.code != EXIT_OK
        self._status.update(self._text())

    def close(self) -> None:
        self._status.stop()

    def _text(self) -> Any:
        from rich.text import Text

        text = Text(self.line())
        text.truncate(max(self._console.width - _SPINNER, 1), overflow="ellipsis")
        return text

    def line(self) -> str:
        """`[12/50] 1 failed  c/x.mlir: ptx, c/y.mlir: exe`."""
        failed = f" {self._failed} failed" if self._failed else ""
        running = ", ".join(
            f"{self._jobs[number].title}: {stage}"
            for number, stage in sorted(self._running.items())
        )
        return f"[{self._ended}/{len(self._jobs)}]{failed}  {running}"
