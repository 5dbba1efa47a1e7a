"""What the libraries of a process tell of their calls: AOTC_TRACE=FILE, AOTC_NVTX=1."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command import process_environment
from runtime.support import RUNTIME, STRICT_FLAGS, compile_c

import aotc

TEXT = """\
func.func @{name}(%x: tensor<?xf32>) -> tensor<?xf32> attributes {{llvm.emit_c_interface}} {{
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}}
"""
PROGRAM = """\
import os, signal
import numpy as np
import aotc
for name in ("first", "second"):
    library = aotc.load(f"{name}/lib/lib{name}.so")
    for _ in range(3):
        getattr(library, name)(np.ones(1000, np.float32))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two, in packages."""
    folder = tmp_path_factory.mktemp("libraries")
    for name in ("first", "second"):
        place = f"{folder / name}/"
        aotc.build(TEXT.format(name=name), name=name, emit="shared", chips="sm_80", out=place)
    return folder


def _run(libraries: Path, **variables: str) -> str:
    """What a program says that calls each of them three times, and is killed."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=libraries,
        env=process_environment({"AOTC_DEVICE": "cpu", **variables}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    return done.stderr


def test_two_libraries_of_a_killed_process_share_a_file(libraries: Path, tmp_path: Path) -> None:
    """The file has the events of both, each whole, whenever the process ends. What an earlier
    process left there is gone."""
    trace = tmp_path / "trace.json"
    trace.write_text('[{"name": "an old one"}]')
    _run(libraries, AOTC_TRACE=str(trace))
    spans = json.loads(trace.read_text().removesuffix(",\n") + "]")
    assert {span["ph"] for span in spans} == {"X"}
    for name in ("first", "second"):
        calls = [event for event in spans if (event["cat"], event["name"]) == ("call", name)]
        kernels = [
            event
            for event in spans
            if event["cat"] == "launch" and event["name"].startswith(f"{name}_")
        ]
        assert (len(calls), len(kernels)) == (3, 3)
        for call, kernel in zip(calls, kernels, strict=True):
            assert call["ts"] <= kernel["ts"]
            assert kernel["ts"] + kernel["dur"] <= call["ts"] + call["dur"]
            assert kernel["args"]["device"] == call["args"]["device"] == "cpu"
            assert kernel["args"]["kernel"] == kernel["name"]


def test_calls_are_ranges_of_a_profiler(libraries: Path, tmp_path: Path) -> None:
    """Each library finds the profiler that the environment names, where it is asked to."""
    profiler = tmp_path / "profiler.so"
    source = RUNTIME / "tests" / "fake_profiler.c"
    compile_c([*STRICT_FLAGS, "-shared", "-fPIC", source, "-o", profiler], making="a profiler")
    there = {"NVTX_INJECTION64_PATH": str(profiler)}
    ranges = [f"profiler: {what}" for what in ("begins first", "ends") * 3]
    ranges += [f"profiler: {what}" for what in ("begins second", "ends") * 3]
    said = _run(libraries, AOTC_NVTX="1", **there).splitlines()
    assert [line for line in said if line.startswith("profiler: ")] == [
        "profiler: starts",
        *ranges[:6],
        "profiler: starts",
        *ranges[6:],
    ]
    assert _run(libraries, AOTC_NVTX="1") == ""
    assert _run(libraries, AOTC_NVTX="0", **there) == ""
    assert _run(libraries, AOTC_NVTX="1", NVTX_INJECTION64_PATH="/no/such.so") == ""
