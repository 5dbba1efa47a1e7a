"""Observers of a build: intermediates on disk, times, progress on a terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aotc.output import write_file

if TYPE_CHECKING:
    from aotc.artifacts import ArtifactFile

# Constants with more elements are elided in texts that are only meant for reading.
LONGEST_SAVED = 1 << 16
# Seconds after which the progress of a build is shown.
_PROGRESS_DELAY = 2.0


class SaveTemps:
    """Writes every artifact into `folder`, numbered in the order of the stages."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def stage_started(self, name: str) -> None:
        pass

    def stage_finished(
        self, name: str, artifacts: Sequence[ArtifactFile], seconds: tuple[float, float]
    ) -> None:
        for artifact in artifacts:
            self._count += 1
            place = self._folder / f"{self._count:02}-{name}.{artifact.file_name}"
            content = artifact.path or artifact.content()
            write_file(place, content, executable=artifact.kind.is_executable)


class TimeReport:
    """Measures each stage: `times` in seconds of wall time; `text` is a table, in milliseconds.

    The times of concurrent stages overlap: the total is less than their sum.
    """

    def __init__(self) -> None:
        self.times: list[tuple[str, float]] = []
        self._begin: float | None = None
        self._end = 0.0

    def stage_started(self, name: str) -> None:
        pass

    def stage_finished(
        self, name: str, artifacts: Sequence[ArtifactFile], seconds: tuple[float, float]
    ) -> None:
        begin, end = seconds
        self.times.append((name, end - begin))
        self._begin = begin if self._begin is None else min(self._begin, begin)
        self._end = max(self._end, end)

    def text(self) -> str:
        total = self._end - (self._begin or 0.0)
        rows = [*self.times, ("total", total)]
        return "\n".join(
            f"{name:<12} {1000 * seconds:9.1f} ms {100 * seconds / total if total else 0:5.1f} %"
            for name, seconds in rows
        )


class Progress:
    """Shows what a build is doing on the terminal after a delay, and erases it at the end.

    `counts` returns how many concurrent tasks are done, and how many there are; None if there are
    none.
    """

    def __init__(self, counts: Callable[[], tuple[int, int] | None]) -> None:
        # Importing rich takes longer than a short build: it is imported when something is shown.
        self._counts = counts
        self._stage = ""
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()
        self._status: object | None = None

    def stage_started(self, name: str) -> None:
        self._stage = name
        if self._timer is None:
            self._timer = threading.Timer(_PROGRESS_DELAY, self._show)
            self._timer.daemon = True
            self._timer.start()

    def stage_finished(
        self, name: str, artifacts: Sequence[ArtifactFile], seconds: tuple[float, float]
    ) -> None:
        pass

    def close(self) -> None:
        """Erases what is shown; called also when a stage fails."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        with self._lock:
            if self._status is not None:
                self._status.stop()  # type: ignore[attr-defined]
                self._status = None

    def __rich__(self) -> str:
        """The current text, which rich requests repeatedly."""
        counts = self._counts()
        of_all = f" ({counts[0]} of {counts[1]})" if counts else ""
        return f"aotc: {self._stage}{of_all} ..."

    def _show(self) -> None:
        from rich.console import Console

        with self._lock:
            if self._timer is None:
                return
            self._status = Console(stderr=True).status(self)
            self._status.start()
