"""Random kernels on the CPU device give what their evaluation in NumPy says."""

from __future__ import annotations

from pathlib import Path

import pytest

from property.batch import BUILD_OPTIONS, Settings, judge
from property.features import Features
from property.generate import generate
from property.run import BATCH, describe

# The same programs on every machine and in every run; others by `make property`.
FIRST_SEED = 1_000_000
UNOPTIMIZED = (*BUILD_OPTIONS, "-O0")


def check(first_seed: int, folder: Path, settings: Settings) -> None:
    """Builds and runs a batch; a failure tells the seed, the command and what it said."""
    seeds = range(first_seed, first_seed + BATCH)
    verdicts = judge([generate(f"p{seed}", seed, Features()) for seed in seeds], folder, settings)
    assert len(verdicts) == BATCH
    failures = [verdict for verdict in verdicts if verdict.kind != "ok"]
    assert not failures, "\n".join(
        [
            *(describe(verdict, int(verdict.program.name[1:]), verdict) for verdict in failures),
            "To have it shrunk: python -m tests.property.run --count 1 --seed SEED",
        ]
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("batch", range(4))
def test_programs_give_what_they_must(tmp_path: Path, batch: int) -> None:
    check(FIRST_SEED + batch * BATCH, tmp_path, Settings())


@pytest.mark.exhaustive
def test_unoptimized_programs_give_what_they_must(tmp_path: Path) -> None:
    check(FIRST_SEED, tmp_path, Settings(build_options=UNOPTIMIZED))


@pytest.mark.exhaustive
def test_one_thread_gives_what_many_give(tmp_path: Path) -> None:
    check(FIRST_SEED + BATCH, tmp_path, Settings(cpu_threads=1))
