"""The events of a run of a built program or library: a trace of its calls, launches and copies
(`AOTC_TRACE=FILE`), or the report of the harness (`--json`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from aotc.errors import InputError
from aotc.pipes import read_file

_MOST_EVENTS = 200_000


class Event(Struct, frozen=True):
    """A timed event: microseconds since the start of the first event, on a row."""

    name: str
    kind: str
    row: str
    begin: float
    length: float
    about: str


class Run(Struct, frozen=True):
    """A run: the events of a trace, in order, and the lines of a report as (what, value)."""

    file: str
    events: tuple[Event, ...] = ()
    report: tuple[tuple[str, str], ...] = ()


def read_run(path: Path) -> Run:
    """Reads a trace in Chrome's trace event format, or a report of the harness. Raises InputError
    for any other file."""
    try:
        text = read_file(path).decode()
    except OSError as error:
        raise InputError(f"Cannot read '{path}': {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise _no_run(path) from None
    try:
        document = _parse(text)
        if isinstance(document, dict) and "traceEvents" not in document:
            return Run(path.name, report=tuple(_report(document)))
        events = document["traceEvents"] if isinstance(document, dict) else document
        return Run(path.name, events=tuple(_events(events)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _no_run(path) from None


def _parse(text: str) -> Any:
    """Parses JSON; a trace whose writer was killed lacks its end, which the format allows."""
    stripped = text.rstrip()
    if stripped.startswith("[") and not stripped.endswith("]"):
        return json.loads(stripped.removesuffix(",") + "]")
    return json.loads(text)


def _no_run(path: Path) -> InputError:
    return InputError(
        f"'{path}' is no trace of a run: it has neither trace events nor the report of --json.",
        hint="AOTC_TRACE=FILE ./program writes a trace; ./program --json --repeat 20 a report.",
    )


def _events(events: Sequence[Mapping[str, Any]]) -> list[Event]:
    rows = {
        (event.get("pid"), event.get("tid")): str(event["args"]["name"])
        for event in events
        if event.get("ph") == "M" and event.get("name") == "thread_name"
    }
    spans = [event for event in events if event.get("ph") == "X"][:_MOST_EVENTS]
    start = min((float(event["ts"]) for event in spans), default=0.0)
    found = [
        Event(
            str(event["name"]),
            str(event.get("cat", "")),
            rows.get((event.get("pid"), event.get("tid")), f"thread {event.get('tid', 0)}"),
            round(float(event["ts"]) - start, 3),
            float(event.get("dur", 0)),
            ", ".join(f"{name} {value}" for name, value in event.get("args", {}).items()),
        )
        for event in spans
    ]
    return sorted(found, key=lambda event: event.begin)


def _report(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The parts of the harness's report that concern time."""
    device, times = document["device"], document["times"]
    lines = [
        ("program", str(document["program"])),
        ("entry", str(document["entry"])),
        ("device", str(device["name"])),
        ("first call", f"{times['first_call']['wall_ms']:.3f} ms"),
        ("calls timed", str(times["repeat"])),
    ]
    for key, title in (("device_ms", "on the device"), ("wall_ms", "in all")):
        for name, value in (times.get(key) or {}).items():
            lines.append((f"{title}, {name}", f"{value:.3f} ms"))
    return lines
