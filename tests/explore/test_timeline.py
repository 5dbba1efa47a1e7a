"""A page takes the trace of a run, or the report of the harness."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aotc.errors import InputError
from aotc.explore.timeline import Event, read_run

_CALL = {"name": "f", "cat": "call", "ph": "X", "ts": 100.5, "dur": 40, "pid": 1, "tid": 2}
_COPY = {"name": "in", "cat": "copy", "ph": "X", "ts": 90.5, "dur": 5, "pid": 1, "tid": 2}
_ROW = {"name": "thread_name", "ph": "M", "pid": 1, "tid": 2, "args": {"name": "main"}}


@pytest.mark.parametrize("form", ["array", "object", "cut short"])
def test_events_are_in_order_and_begin_at_zero(tmp_path: Path, form: str) -> None:
    events = [_ROW, _CALL, {**_COPY, "args": {"bytes": 64}}]
    text = json.dumps({"traceEvents": events} if form == "object" else events)
    path = tmp_path / "trace.json"
    path.write_text(text.removesuffix("]") + ",\n" if form == "cut short" else text)
    assert read_run(path).events == (
        Event("in", "copy", "main", 0.0, 5.0, "bytes 64"),
        Event("f", "call", "main", 10.0, 40.0, ""),
    )


def test_the_harness_report_tells_of_its_times(tmp_path: Path) -> None:
    report = {
        "program": "p",
        "entry": "f",
        "device": {"name": "cpu"},
        "times": {
            "first_call": {"wall_ms": 2.0},
            "repeat": 3,
            "device_ms": {"median": 1.25},
            "wall_ms": None,
        },
    }
    (tmp_path / "run.json").write_text(json.dumps(report))
    assert read_run(tmp_path / "run.json").report == (
        *(("program", "p"), ("entry", "f"), ("device", "cpu")),
        *(("first call", "2.000 ms"), ("calls timed", "3")),
        ("on the device, median", "1.250 ms"),
    )


@pytest.mark.parametrize("text", ["{}", "no JSON", "[1]", '{"traceEvents": 3}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_run(path)
    assert caught.value.message == (
        f"'{path}' is no trace of a run: it has neither trace events nor the report of --json."
    )
