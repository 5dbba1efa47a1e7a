"""`--trace FILE`: where the time of builds goes, for chrome://tracing and ui.perfetto.dev.

The format is Google's "Trace Event Format", its JSON array: one complete event (ph X) for each
build, stage and command of a tool, with `ts` and `dur` in microseconds on the machine's monotonic
clock, which all processes share. A process is a row of its own, and in it builds, stages and
commands; what overlaps is on several lines.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aotc.errors import InputError
from aotc.output import told_of

if TYPE_CHECKING:
    from aotc.artifacts import ArtifactFile

# The lines of a process: the first of each kind.
_BUILDS, _STAGES, _COMMANDS = 0, 100, 200
_TITLES = {_BUILDS: "builds", _STAGES: "stages", _COMMANDS: "commands"}


class Span(Struct, frozen=True):
    """Something that took time: `begin` and `end` by `time.perf_counter`, in seconds."""

    name: str
    begin: float
    end: float
    about: str = ""


class Trace:
    """An observer of one build of `title`: of its stages, and of `spans` of its commands."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._began = time.perf_counter()
        self._stages: list[Span] = []

    def stage_started(self, name: str) -> None:
        pass

    def stage_finished(
        self, name: str, artifacts: Sequence[ArtifactFile], seconds: tuple[float, float]
    ) -> None:
        self._stages.append(Span(name, *seconds, ", ".join(file.file_name for file in artifacts)))

    def append_to(self, path: Path, commands: Iterable[Span] = ()) -> None:
        """Adds this build, which ends now, to a file that `begin_trace` began."""
        build = Span(self._title, self._began, time.perf_counter())
        events = [
            *_events([build], _BUILDS),
            *_events(self._stages, _STAGES),
            *_events(commands, _COMMANDS),
        ]
        text = "".join(f"{json.dumps(event)},\n" for event in events)
        # Whole, whoever else adds to it: one write at the file's end.
        with told_of(path), path.open("ab", buffering=0) as file:
            file.write(text.encode())


def begin_trace(path: Path) -> None:
    """Makes the file, empty. Raises InputError where it cannot be."""
    if path.is_fifo():
        raise InputError(f"Cannot write '{path}': it is a pipe, and a trace is written in parts.")
    with told_of(path), path.open("wb") as file:
        file.write(b"[\n")


def end_trace(path: Path) -> None:
    """Makes it whole: until then it lacks its end, which readers of traces forgive."""
    end = {"name": "end", "ph": "i", "ts": _microseconds(time.perf_counter()), "pid": os.getpid()}
    with told_of(path), path.open("ab") as file:
        file.write(json.dumps({**end, "tid": 0, "s": "g"}).encode() + b"\n]\n")


def _events(spans: Iterable[Span], first_line: int) -> list[dict[str, Any]]:
    """On as many lines as overlap, each that begins first on the first line that is free."""
    free: list[float] = []  # by line: when it is
    found: list[dict[str, Any]] = []
    process = os.getpid()
    for span in sorted(spans, key=lambda span: span.begin):
        line = next((i for i, when in enumerate(free) if when <= span.begin), len(free))
        if line == len(free):
            free.append(0.0)
            name = {"name": _TITLES[first_line] + (f" {line + 1}" if line else "")}
            names = {"name": "thread_name", "ph": "M", "pid": process, "tid": first_line + line}
            found.append({**names, "args": name})
        free[line] = span.end
        event = {
            "name": span.name,
            "cat": _TITLES[first_line],
            "ph": "X",
            "ts": _microseconds(span.begin),
            "dur": _microseconds(span.end - span.begin),
            "pid": process,
            "tid": first_line + line,
        }
        found.append({**event, "args": {"about": span.about}} if span.about else event)
    return found


def _microseconds(seconds: float) -> float:
    return round(1e6 * seconds, 1)
