"""`--trace FILE`: stages and commands with their times, as Chrome's trace viewer reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.command import SAMPLES, Outcome

from aotc.errors import InputError
from aotc.trace import Span, Trace, begin_trace, end_trace

Aotc = Callable[..., Outcome]
SAXPY = SAMPLES / "saxpy.mlir"


def events_of(trace: Path) -> list[dict[str, Any]]:
    """The complete events; no two on one line overlap, and every line has a name."""
    events = json.loads(trace.read_text())
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    complete = [event for event in events if event["ph"] == "X"]
    lines: dict[tuple[int, int], float] = {}
    for event in sorted(complete, key=lambda event: event["ts"]):
        line = (event["pid"], event["tid"])
        assert names[line].split()[0] == event["cat"]
        assert event["ts"] >= lines.get(line, 0.0) - 0.2
        lines[line] = event["ts"] + event["dur"]
    return complete


def test_stages_and_commands(aotc: Aotc, tmp_path: Path) -> None:
    """Each stage of the time report; each command within the stage that runs it."""
    trace = tmp_path / "trace.json"
    done = aotc(
        *("build", SAXPY, "--chip", "sm_80,sm_90", "-o", tmp_path / "x"),
        *("--trace", trace, "--time-report"),
    ).succeeded()
    events = events_of(trace)
    stages = {event["name"]: event for event in events if event["cat"] == "stages"}
    reported = [line.split()[0] for line in done.stderr.splitlines()]
    assert {*stages, "total"} == set(reported)
    (build,) = [event for event in events if event["cat"] == "builds"]
    assert build["name"] == str(SAXPY)
    commands = [event for event in events if event["cat"] == "commands"]
    expected = {
        "PTX for sm_80": "ptx",
        "the cubin for sm_80": "cubin",
        "the cubin for sm_90": "cubin",
        "the fatbin": "fatbin",
        "saxpy.cpu0.o": "cpu-obj",
        "saxpy.host.o": "obj",
        "saxpy_table.o": "obj",
        "the executable saxpy.exe": "exe",
    }
    assert {event["name"] for event in commands} >= set(expected)
    for event in commands:
        stage = stages[expected[event["name"]]] if event["name"] in expected else stages["exe"]
        assert stage["ts"] <= event["ts"]
        assert event["ts"] + event["dur"] <= stage["ts"] + stage["dur"]
    assert {event["args"]["about"] for event in commands} >= {"zig clang", "ptxas", "fatbinary"}


def test_a_failed_builds_trace_is_whole(aotc: Aotc, tmp_path: Path) -> None:
    source, trace = tmp_path / "bad.mlir", tmp_path / "trace.json"
    source.write_text("func.func @f(\n")
    assert aotc("build", source, "--trace", trace, "-o", tmp_path / "x").code == 2
    (build,) = events_of(trace)
    assert build["name"] == str(source)


def test_builds_of_many_modules_share_it(aotc: Aotc, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    sources = [SAXPY, SAMPLES / "dot.mlir", SAMPLES / "vector_add.mlir"]
    options = ("--emit", "mlir", "-j", "2", "-o", f"{tmp_path}/", "--trace", trace)
    aotc("build", *sources, *options).succeeded()
    events = events_of(trace)
    assert {event["name"] for event in events if event["cat"] == "builds"} == set(map(str, sources))
    assert len([event for event in events if event["name"] == "load"]) == 3


def test_where_it_cannot_be_written(aotc: Aotc, tmp_path: Path) -> None:
    done = aotc("build", SAXPY, "--trace", tmp_path / "no" / "where", "-o", tmp_path / "x")
    assert done.code == 2
    assert done.stderr.startswith(f"aotc: error: Cannot write '{tmp_path}/no/where': ")
    assert not (tmp_path / "x").exists()
    with pytest.raises(InputError):
        end_trace(tmp_path / "no" / "where")


def test_what_overlaps_is_on_several_lines(tmp_path: Path) -> None:
    trace, file = Trace("x"), tmp_path / "trace.json"
    begin_trace(file)
    trace.append_to(file, [Span("a", 0.0, 2.0), Span("b", 1.0, 3.0), Span("c", 2.0, 4.0)])
    end_trace(file)
    lines = {event["name"]: event["tid"] for event in events_of(file)}
    assert lines["a"] == lines["c"] != lines["b"]


def test_a_pipe_is_no_trace(aotc: Aotc, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    outcome = aotc("build", SAXPY, "--trace", tmp_path / "pipe")
    assert outcome.code == 2
    assert "it is a pipe, and a trace is written in parts" in outcome.stderr
