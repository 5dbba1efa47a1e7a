"""A few of the builds that `make stress` makes a thousand of."""

from __future__ import annotations

from stress.run import Ended, builds, interrupts


def test_partly_warm_builds_end() -> None:
    """Three at a time, each with its file."""
    assert list(builds(6, seed=1)) == [Ended("right")] * 6


def test_interrupted_builds_end() -> None:
    """A machine with other work may be late."""
    endings = list(interrupts(6, seed=1))
    assert len(endings) == 6
    assert {ended.kind for ended in endings} <= {"right", "late"}
