"""Ctrl-C at the worst moment: no tool stays alone, and none is waited for."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aotc.processes.signals import uninterrupted
from aotc.toolchain import Runner
from aotc.toolchain.runner import StoppedError

SLEEP = ["/bin/sleep", "300"]


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner({"HOME": str(tmp_path)})


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that are started, each of which interrupts before its starter knows of it."""
    found = []

    class Interrupting(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            found.append(self)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupting)
    return found


def test_a_tool_that_has_just_been_started_is_ended(
    runner: Runner, started: list[subprocess.Popen[bytes]]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        runner.run(SLEEP, making="x")
    (process,) = started
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("submitted", [1, 2])
def test_tools_are_ended_while_others_are_submitted(
    runner: Runner, submitted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, calls = ThreadPoolExecutor.submit, []

    def interrupting(self: ThreadPoolExecutor, *arguments: Any) -> Any:
        calls.append(submit(self, *arguments))
        if len(calls) == submitted:
            time.sleep(0.05)  # its tool starts
            os.kill(os.getpid(), signal.SIGINT)
        return calls[-1]

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupting)
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        runner.in_parallel([partial(runner.run, SLEEP, making="x")] * 2, jobs=2)
    assert time.monotonic() - begin < 60, "it waited for the tools"
    assert [type(call.exception()) for call in calls] == [StoppedError] * 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_waits_for_the_end_of_the_lines(number: signal.Signals) -> None:
    came: list[tuple[int, str]] = []
    where = "within"
    before = signal.signal(number, lambda number, frame: came.append((number, where)))
    try:
        handler = signal.getsignal(number)
        with uninterrupted(), uninterrupted():
            signal.raise_signal(number)
            signal.raise_signal(number)
            assert came == []
            where = "after"
        assert came == [(number, "after")]
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


def test_handlers_are_restored_when_the_lines_fail() -> None:
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), uninterrupted():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_signal_that_is_ignored_or_fatal_stays_so() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with uninterrupted():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_may_use_it() -> None:
    def body() -> str:
        with uninterrupted():
            return "through"

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(body).result() == "through"
