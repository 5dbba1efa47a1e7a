"""A built program writes the trace that `aotc explore --run` reads."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from helpers.command import Outcome

from aotc.explore.timeline import read_run
from samples import SAMPLES


def test_a_programs_trace_is_read(aotc: Callable[..., Outcome], tmp_path: Path) -> None:
    program, trace = tmp_path / "saxpy", tmp_path / "run.json"
    options = ("--chip", "sm_80", "--ptx", "none", "-o", program)
    aotc("build", SAMPLES / "saxpy.mlir", *options).succeeded()
    environment = {**os.environ, "AOTC_TRACE": str(trace)}
    command = [program, "--device", "cpu", "--repeat", "2", "--dim", "x=64", "--dim", "y=64"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    assert process.wait(60) == 0
    events = json.loads(trace.read_text().removesuffix(",\n") + "]")
    assert {event["ph"] for event in events} == {"X"}
    assert {event["pid"] for event in events} == {process.pid}
    assert all(event["ts"] > 0 and event["dur"] >= 0 for event in events)
    (launch, *_) = launches = [event for event in events if event["cat"] == "launch"]
    calls = [event for event in events if event["cat"] == "call"]
    assert len(launches) == len(calls) >= 3  # the first call, and those that are timed
    assert {call["name"] for call in calls} == {"saxpy"}
    assert launch["args"]["kernel"] == launch["name"]
    assert launch["args"]["device"] == "cpu"
    assert len(launch["args"]["grid"]) == len(launch["args"]["block"]) == 3
    run = read_run(trace)
    assert len(run.events) == len(events)
    assert {event.kind for event in run.events} <= {"call", "launch", "copy", "wait"}
    assert sum(event.kind == "launch" for event in run.events) == len(launches)
