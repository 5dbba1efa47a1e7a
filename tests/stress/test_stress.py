"""A few of the builds that `make stress` makes a thousand of."""

from __future__ import annotations

import pytest

from stress.run import Ended, builds, interrupts


def test_partly_warm_builds_end() -> None:
    """Three at a time, each with its file."""
    assert list(builds(6, seed=1)) == [Ended("right")] * 6


@pytest.mark.exhaustive
def test_interrupted_builds_end() -> None:
    """They end with 130, with one line of text and with nothing left.

    Some may be "late", which is more than a second after the signal. The second is wall-clock time
    of four to ten processes that the kernel schedules among the machine's other work: where tests
    run on every core, aotc cannot promise it. `make stress`, which has the machine for itself,
    fails on it. A build that waits for something that never comes is "never ended", here, too.
    """
    endings = list(interrupts(6, seed=1))
    assert len(endings) == 6
    assert {ended.kind for ended in endings} <= {"right", "late"}
