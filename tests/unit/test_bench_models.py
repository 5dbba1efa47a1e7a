"""The models' benchmark: which engine is best, the tables, the errors and the profile's text."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.models.gpu import inductor, measure
from bench.models.gpu import table as gpu_table
from bench.models.profile import Step, report
from bench.models.results import Result, Row, geometric_mean, load_all, rows
from bench.models.table import tables, write_table
from bench.models.worker import error_of


def result(model: str, engine: str, wall: float | None, cpu: float | None) -> Result:
    failure = "a/b failed in /home/me/x.py" if wall is None else None
    return Result(model, 1, 2, engine, failure, wall=wall, cpu=cpu, build=12.34, size=1.5)


RESULTS = [
    result("gpt2", "aotc", 4.0, 6.0),
    result("gpt2", "onnxruntime", 2.0, 4.0),
    result("gpt2", "eager", 3.0, 3.0),
    result("resnet18", "aotc", 0.5, 0.25),
    result("resnet18", "inductor", None, None),
    result("resnet18", "eager", 10.0, 12.5),
]


def test_the_best_engine_is_of_each_measure() -> None:
    """The fastest other engine on the wall need not take the least CPU time."""
    _, row = rows(RESULTS, ["resnet18", "gpt2"])
    assert row.model == "gpt2"
    assert row.ratio("wall") == 2
    assert row.ratio("cpu") == 2


def test_there_is_no_ratio_to_nothing() -> None:
    ours, failed = RESULTS[0], RESULTS[4]
    assert Row("m", 1, 1, {"aotc": ours}).ratio("wall") is None
    assert Row("m", 1, 1, {"aotc": ours, "inductor": failed}).ratio("wall") is None
    assert Row("m", 1, 1, {"eager": ours}).ratio("wall") is None


def test_the_geometric_mean() -> None:
    assert geometric_mean([0.5, 8.0]) == pytest.approx(2)
    assert geometric_mean([]) == 1


def test_the_table() -> None:
    assert tables(rows(RESULTS, ["resnet18", "gpt2"])) == (
        "2 threads, batch 1:\n\n"
        "| model | batch | aotc | onnxruntime | inductor | eager | aotc / best | of CPU ms "
        "| build, CPU s | library, MiB |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n"
        "| resnet18 | 1 | 0.500 (0.250) |  | none | 10.0 (12.5) | 0.05 | 0.02 | 12.3 | 1.5 |\n"
        "| gpt2 | 1 | 4.00 (6.00) | 2.00 (4.00) |  | 3.00 (3.00) | 2.00 | 2.00 | 12.3 | 1.5 |\n"
        "| geometric mean |  |  |  |  |  | 0.32 | 0.20 |  |  |\n\n"
        "- `resnet18`, inductor: a/b failed in x.py"
    )


def test_the_table_goes_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    begin, end = (f"<!-- models of bench.models: {side} -->" for side in ("begin", "end"))
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    write_table(page, "models", tables(rows(RESULTS, ["gpt2"])))
    text = page.read_text()
    assert text.startswith(f"before\n{begin}\n2 threads, batch 1:\n")
    assert text.endswith(f"| 2.00 | 2.00 |  |  |\n{end}\nafter\n")
    assert "old" not in text


def test_a_result_is_read_as_it_was_saved(tmp_path: Path) -> None:
    for one in RESULTS:
        one.save(tmp_path)
    assert {one.file(tmp_path).name: one for one in load_all(tmp_path)} == {
        one.file(tmp_path).name: one for one in RESULTS
    }


def test_an_error_is_relative_to_the_largest_number() -> None:
    exact = [np.array([100.0, 1.0]), np.array([1, 2])]
    near = [np.array([100.0, 2.0], np.float32), np.array([1, 2])]
    assert error_of(near, exact) == pytest.approx(0.01)
    inf = float("inf")
    assert error_of([near[0], np.array([1, 3])], exact) == inf
    assert error_of(near[:1], exact) == inf
    assert error_of([np.zeros(3), near[1]], exact) == inf
    assert error_of([np.array([np.nan, 1]), near[1]], exact) == inf


def test_a_profile_has_the_longest_steps_first() -> None:
    steps = [Step("relu", "8", 1e-3), Step("conv", "4x2", 2e-3), Step("relu", "8", 5e-3)]
    assert report("m, aotc", steps, 10e-3) == (
        "m, aotc: 10.000 ms; 3 steps in 8.000 ms\n"
        "       ms     % count first\n"
        "    6.000  75.0     2     0  relu  8\n"
        "    2.000  25.0     1     1  conv  4x2\n"
    )


def test_the_table_of_a_gpu(tmp_path: Path) -> None:
    """A later run's rows replace those of an earlier one, and those of a model are together; a
    failure has its reason below."""
    engines = {
        "aotc": {"us": 50.4, "error": 1e-4, "MiB": 10},
        "eager": {"us": 200, "error": 2e-4, "MiB": 20},
        "autotune": {"us": 100.8, "error": 2e-4, "MiB": 30},
    }
    first = {"model": "bert", "dtype": "f16", "batch": 1, "of_any": False}
    of_runs = [
        [
            {**first, "engines": {}},
            {"case": "vit.f16.b1", "failure": "the limit"},
            {**first, "model": "lstm", "of_any": True, "engines": {}},
        ],
        [
            {**first, "engines": engines},
            {**first, "batch": 8, "engines": {"aotc": {"failure": "no <x>"}}},
        ],
    ]
    files = [tmp_path / f"{number}.json" for number in range(len(of_runs))]
    for file, run in zip(files, of_runs, strict=True):
        file.write_text(json.dumps(run))
    assert gpu_table.table(gpu_table.read(files)) == (
        "| model | type | batch | aotc, µs | eager, µs | max-autotune, µs | aotc / best | error "
        "| of eager | MiB, aotc | MiB, eager | MiB, max-autotune |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        "| bert | f16 | 1 | 50 | 200 | 101 | 0.50 | 1.0e-04 | 2.0e-04 | 10 | 20 | 30 |\n"
        "| bert | f16 | 8 |  |  |  |  |  |  |  |  |  |\n"
        "| lstm | f16 | 1, of any |  |  |  |  |  |  |  |  |  |\n"
        "| geometric mean |  |  |  |  |  | 0.50 |  |  |  |  |  |\n\n"
        "- `bert` in f16, batch 8, aotc: no &lt;x>"
    )


def test_a_deadline_ends_what_catches_exceptions() -> None:
    """Inductor goes on with the next candidate when one raises an Exception."""

    def candidates() -> None:
        while True:
            with contextlib.suppress(Exception):
                time.sleep(10)

    with pytest.raises(inductor.TooLong), inductor.deadline(time.monotonic() + 0.05):
        candidates()
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_kernels_are_tried_by_one_process_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial waits for the one who has the lock."""
    tried = threading.Event()
    module = types.ModuleType("benchmarking")

    def trial(call: Callable[[], int], rep: int) -> tuple[int, int]:
        tried.set()
        return call(), rep

    module.__dict__["benchmarker"] = types.SimpleNamespace(benchmark_gpu=trial)
    monkeypatch.setitem(sys.modules, "torch._inductor.runtime.benchmarking", module)
    inductor.time_kernels_alone(tmp_path / "lock")
    with ThreadPoolExecutor(1) as pool:
        with (tmp_path / "lock").open("w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            waiting = pool.submit(module.benchmarker.benchmark_gpu, lambda: 3, rep=40)
            assert not tried.wait(0.1)
        assert waiting.result(10) == (3, 40)


def test_an_engine_that_fails_later_on_loses_its_own_time() -> None:
    """A row has the times of the others."""

    class Case(measure._Case):
        def __init__(self) -> None:
            self.calls = {"aotc": tuple, "autotune": tuple}
            self.turns = 0

        def _turn(self, call: measure.Call, count: int) -> float:
            self.turns += 1
            if self.turns > 8 and call is self.calls.get("autotune"):
                raise RuntimeError("out of memory")
            return 2e-3

    case = Case()
    case.calls["autotune"] = lambda: ()
    found: dict[str, dict[str, Any]] = {"aotc": {}, "autotune": {}}
    case.time(found, 9)
    assert found == {"aotc": {"us": 2000}, "autotune": {"failure": "RuntimeError: out of memory"}}


@pytest.mark.parametrize(
    ("seconds", "called"), [(1e-3, 2 + 4 + 7), (0.02, 2 + 4 + 2), (0.5, 2 + 1)]
)
def test_a_turn_has_as_many_calls_as_fit(
    seconds: float, called: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One in front of those that are timed, but for one that takes long: a prompt of 64 sequences
    takes seconds."""
    calls: list[float] = []

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.at = sum(calls)

        def elapsed_time(self, end: Event) -> float:
            return 1e3 * (end.at - self.at)

    class Case(measure._Case):
        def __init__(self) -> None:
            self._torch = types.SimpleNamespace(
                cuda=types.SimpleNamespace(Event=Event, synchronize=lambda: None)
            )

    def call() -> tuple[()]:
        calls.append(seconds)
        return ()

    assert Case()._turn_of(call)() == pytest.approx(seconds)
    assert len(calls) == called


def test_a_reference_too_large_is_made_element_by_element() -> None:
    """Inputs without a batch go to each call."""
    inputs = {"x": np.arange(6.0).reshape(3, 2), "at": np.array([7])}
    parts = measure._parts(inputs, 3)
    assert [part["x"].tolist() for part in parts] == [[[0, 1]], [[2, 3]], [[4, 5]]]
    assert all(part["at"].tolist() == [7] for part in parts)


def test_each_gpu_takes_the_next_models_when_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU whose model takes long keeps none from the others, which have processors of their
    own; each row is in the file once."""
    found: dict[str, str] = {}
    cores: dict[str, set[int]] = {}
    others = threading.Event()

    class Process:
        def __init__(self, _: Path, name: str, environment: dict[str, str]) -> None:
            self._name = name
            device = environment["CUDA_VISIBLE_DEVICES"]
            found[name] = device
            cores.setdefault(device, set()).update(os.sched_getaffinity(0))

        def prepare(self, _: float) -> bool:
            return True

        def measure(self, _: float) -> dict[str, Any]:
            if self._name == "slow":
                assert others.wait(20)
            if self._name == "e":
                others.set()
            return {"case": self._name, "failure": "none"}

    monkeypatch.setattr(measure, "_Process", Process)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    options = argparse.Namespace(gpus=2, jobs=1, engines=["aotc"], json=tmp_path / "rows.json")
    end = time.monotonic() + 60
    queue = measure._Queue(["slow", "b", "c", "d", "e"], options, end, tmp_path)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(queue.measure_on, range(2)))
    rows = json.loads(options.json.read_text())
    assert [row["case"] for row in rows] == ["b", "c", "d", "e", "slow"]
    assert found["slow"] != found["b"]
    assert {found[name] for name in "bcde"} == {found["b"]}
    assert set(found.values()) == {"5", "7"}
    if len(queue.cores) > 1:
        assert not cores["5"] & cores["7"]


def test_the_folder_has_all_that_opens_a_library(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from bench.models.gpu.bundle import copy_files

    copy_files(tmp_path)
    code = """
import importlib, pkgutil
import aotc.library
for one in pkgutil.walk_packages(aotc.library.__path__, "aotc.library."):
    importlib.import_module(one.name)
print(aotc.__file__)
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path))
