"""`--trace FILE`: a trace of the time of builds, for chrome://tracing and ui.perfetto.dev.

The format is the JSON array of Google's "Trace Event Format": one complete event (ph X) for each
build, stage and command of a tool, with `ts` and `dur` in microseconds on the machine's monotonic
clock, which all processes share. Each process has separate rows for builds, stages and commands;
events that overlap are on separate rows.
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

# Thread ids of the first row of each kind in a process.
_BUILDS, _STAGES, _COMMANDS = 0, 100, 200
_TITLES = {_BUILDS: "builds", _STAGES: "stages", _COMMANDS: "commands"}


class Span(Struct, frozen=True):
    """A span of time: `begin` and `end` by `time.perf_counter`, in seconds."""

    name: str
    begin: float
    end: float
    about: str = ""


class Trace:
    """Observer of the stages of one build; `title` names the build, `spans` are its commands."""

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
        """Appends this build, which ends now, to a file that `begin_trace` created."""
        build = Span(self._title, self._began, time.perf_counter())
        events = [
            *_events([build], _BUILDS),
            *_events(self._stages, _STAGES),
            *_events(commands, _COMMANDS),
        ]
        text = "".join(f"{json.dumps(event)},\n" for event in events)
        # One write at the end of the file is atomic, even if other processes append to it.
        with told_of(path), path.open("ab", buffering=0) as file:
            file.write(text.encode())


def begin_trace(path: Path) -> None:
    """Creates the file, empty. Raises InputError if that fails."""
    if path.is_fifo():
        raise InputError(f"Cannot write '{path}': it is a pipe, and a trace is written in parts.")
    with told_of(path), path.open("wb") as file:
        file.write(b"[\n")


def end_trace(path: Path) -> None:
    """Completes the file: until then its JSON lacks the end, which trace viewers accept."""
    end = {"name": "end", "ph": "i", "ts": _microseconds(time.perf_counter()), "pid": os.getpid()}
    with told_of(path), path.open("ab") as file:
        file.write(json.dumps({**end, "tid": 0, "s": "g"}).encode() + b"\n]\n")


def _events(spans: Iterable[Span], first_line: int) -> list[dict[str, Any]]:
    """The events; each span is on the first row that is free at its start."""
    free: list[float] = []  # for each row, the time from which it is free
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
