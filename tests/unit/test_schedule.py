"""Concurrent stages: the same order, warnings and failure as one after the other."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aotc import mlir
from aotc.building.build import Build
from aotc.building.results import StageResult
from aotc.errors import InputError
from aotc.request import BuildRequest
from aotc.stages.schedule import Made, Schedule, Stage
from aotc.toolchain import RecordingRunner, Toolchain

PATIENCE = 20.0


@pytest.fixture
def build(tmp_path: Path) -> Build:
    return Build(
        request=BuildRequest(Path("x.mlir")),
        toolchain=Toolchain({}),
        runner=RecordingRunner(),
        folder=tmp_path,
        context=mlir.make_context(),
    )


def run(build: Build, stages: list[Stage]) -> list[str]:
    """Runs them as a build does; what was told of them."""
    told: list[str] = []

    def started(stage: Stage) -> None:
        told.append(f"{stage.name} started")

    def ended(stage: Stage, made: Made) -> None:
        told.append(f"{stage.name} ended")

    with Schedule(build, started, ended) as schedule:
        for stage in stages:
            schedule.run(stage)
        schedule.end_all()
    return told


def stage(
    name: str,
    work: Callable[[Build], object] = lambda build: None,
    *takes: str,
    is_concurrent: bool = False,
) -> Stage:
    def run(build: Build, *inputs: StageResult) -> StageResult:
        work(build)
        return StageResult()

    return Stage(name, takes, run, is_concurrent=is_concurrent)


def test_concurrent_stages_run_while_others_work(build: Build) -> None:
    """Each of the two waits for the other: one after the other would not end."""
    first, second = threading.Event(), threading.Event()

    def concurrent(build: Build) -> None:
        first.set()
        assert second.wait(PATIENCE)

    def main(build: Build) -> None:
        assert first.wait(PATIENCE)
        second.set()

    told = run(
        build, [stage("a", concurrent, is_concurrent=True), stage("b", main), stage("c", str, "a")]
    )
    assert told == [
        "b started",
        *("a started", "a ended", "b ended"),
        *("c started", "c ended"),
    ]


def test_a_stage_waits_for_what_it_takes(build: Build) -> None:
    made: list[str] = []

    def slow(build: Build) -> None:
        time.sleep(0.1)
        made.append("a")

    stages = [
        stage("a", slow, is_concurrent=True),
        stage("b", lambda build: made.append("b"), "a", is_concurrent=True),
        stage("c", lambda build: made.append("c"), "b"),
    ]
    run(build, stages)
    assert made == ["a", "b", "c"]


def test_a_stage_is_given_the_results_that_it_takes(build: Build) -> None:
    """Those of its row, in their order, then what its beginning made; None for one that the build
    does not have."""

    class Named(StageResult, frozen=True):
        name: str

    def make(name: str) -> Callable[..., StageResult]:
        def run(build: Build, *inputs: Named | None) -> StageResult:
            return Named(f"{name}({', '.join('none' if i is None else i.name for i in inputs)})")

        return run

    stages = [
        Stage("a", (), make("a")),
        Stage("b", ("a",), make("b"), is_concurrent=True, begin=make("begin")),
        Stage("c", ("b", "a"), make("c"), may_take=("x",), is_concurrent=True),
        Stage("d", ("c",), make("d"), may_take=("a",)),
    ]
    with Schedule(build, lambda stage: None, lambda stage, made: None) as schedule:
        for one in stages:
            schedule.run(one)
        schedule.end_all()
    b = "b(a(), begin(a()))"
    c = f"c({b}, a(), none)"
    results = [schedule.results[name] for name in "abcd"]
    assert results == [Named("a()"), Named(b), Named(c), Named(f"d({c}, a())")]


def _fail(message: str, after: float = 0.0) -> Callable[[Build], None]:
    def work(build: Build) -> None:
        time.sleep(after)
        raise InputError(message)

    return work


@pytest.mark.parametrize(("first", "second"), [(0.1, 0.0), (0.0, 0.1)])
def test_of_two_failures_the_first_stages_is_raised(
    build: Build, first: float, second: float
) -> None:
    """Whichever comes first."""
    stages = [
        stage("a", _fail("a fails", first), is_concurrent=True),
        stage("b", _fail("b fails"), "a", is_concurrent=True),
        stage("c", _fail("c fails", second)),
    ]
    with pytest.raises(InputError, match=r"^a fails$"):
        run(build, stages)
    with pytest.raises(InputError, match=r"^c fails$"):
        run(build, [stage("a", is_concurrent=True), *stages[2:]])


def test_what_takes_a_failed_stages_work_does_not_run(build: Build) -> None:
    ran: list[str] = []
    stages = [
        stage("a", _fail("a fails"), is_concurrent=True),
        stage("b", lambda build: ran.append("b"), "a", is_concurrent=True),
        stage("c", lambda build: ran.append("c"), "b"),
    ]
    with pytest.raises(InputError, match=r"^a fails$"):
        run(build, stages)
    assert ran == []


@pytest.mark.parametrize("delay", [0.0, 0.1])
def test_warnings_come_in_one_order(build: Build, delay: float) -> None:
    def concurrent(build: Build) -> None:
        time.sleep(delay)
        build.warn("x", "concurrent")

    def main(build: Build) -> None:
        time.sleep(0.1 - delay)
        build.warn("x", "main")

    stages = [stage("a", concurrent, is_concurrent=True), stage("b", main), stage("c", str, "a")]
    run(build, stages)
    assert [warning.message for warning in build.log.warnings] == ["main", "concurrent"]


def test_an_interrupt_while_it_waits_ends_the_tools(build: Build) -> None:
    def until_stopped(build: Build) -> None:
        end = time.monotonic() + PATIENCE
        while not build.runner._stopped:
            assert time.monotonic() < end
            time.sleep(0.01)
        raise InputError("stopped")

    def interrupt(build: Build) -> None:
        threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()

    stages = [
        stage("a", until_stopped, is_concurrent=True),
        stage("b", interrupt),
        stage("c", str, "a"),
    ]
    with pytest.raises(KeyboardInterrupt):
        run(build, stages)
