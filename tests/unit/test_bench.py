"""The benchmark's arithmetic: what is timed, which ratios are told, and that it still runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command import REPOSITORY, process_environment

from bench.cpu_device.cases import Case, Goal
from bench.cpu_device.report import Outcome, Setting, to_json, to_text
from bench.measure import FailedError, Timing, Variant, measure, ratio


def variant(name: str, log: list[str], *, problem: str | None = None) -> Variant:
    return Variant(name, lambda: log.append(name), lambda: log.append(f"({name}"), lambda: problem)


def test_variants_take_turns() -> None:
    """Each is checked once, then called once a round, prepared each time, by turns the first."""
    log: list[str] = []
    timings = measure([variant("a", log), variant("b", log)], rounds=3)
    assert " ".join(log) == "(a a (b b (a a (b b (b b (a a (a a (b b"
    assert [(t.name, len(t.seconds), t.failure) for t in timings] == [
        ("a", 3, None),
        ("b", 3, None),
    ]


def test_what_is_wrong_is_not_timed() -> None:
    log: list[str] = []

    def fail() -> None:
        raise FailedError("no such kernel")

    failing = Variant("b", fail, lambda: None, lambda: None)
    timings = measure([variant("a", log, problem="element 7 is 0"), failing], rounds=2)
    assert log == ["(a", "a"]
    assert timings == [
        Timing("a", (), "wrong result: element 7 is 0"),
        Timing("b", (), "no such kernel"),
    ]


def test_a_ratio_is_of_times_in_one_round() -> None:
    """A slow round slows both: it says nothing about the ratio."""
    slow_once = Timing("a", (2.0, 20.0, 2.0))
    assert ratio(slow_once, Timing("b", (1.0, 10.0, 1.0))) == 2
    assert ratio(slow_once, Timing("b", (4.0, 5.0, 1.0))) == 2
    assert ratio(slow_once, Timing("b", (), "broken")) is None


SETTING = Setting(2, "pthreads", 2, "-O3", "x86_64-linux-gnu.2.28", {"aotc": "1.2.3"})
OUTCOME = Outcome(
    Case(
        "sum",
        "sums",
        ("C",),
        (Goal("fast", "C", 1.2), Goal("slow", "C", 1.2), Goal("broken", "C", 1.2)),
        (),
        lambda _: [],
        bytes_moved=4_000_000_000,
    ),
    [
        Timing("C", (1.0, 1.0)),
        Timing("fast", (0.5, 0.75)),
        Timing("slow", (2.0, 3.0)),
        Timing("broken", (), "wrong result: element 1 is 0, not 1"),
    ],
)


def test_the_table() -> None:
    text = to_text(SETTING, [OUTCOME])
    assert text.partition("\n\n")[2] == (
        "sum: sums\n"
        "            median     fastest     slowest  GB/s   / C\n"
        "  C     1000.00 ms  1000.00 ms  1000.00 ms   4.0  1.00\n"
        "  fast   625.00 ms   500.00 ms   750.00 ms   6.4  0.62\n"
        "  slow  2500.00 ms  2000.00 ms  3000.00 ms   1.6  2.50\n"
        "  broken: wrong result: element 1 is 0, not 1\n"
        "\n"
        "Goals\n"
        "  sum: fast / C    0.62  at most 1.2           met\n"
        "  sum: slow / C    2.50  at most 1.2        missed\n"
        "  sum: broken / C     -  at most 1.2  not measured\n"
    )


def test_the_numbers() -> None:
    (case,) = json.loads(json.dumps(to_json(SETTING, [OUTCOME])))["cases"]
    assert case["variants"][1] == {
        "name": "fast",
        "failure": None,
        "median_s": 0.625,
        "seconds": [0.5, 0.75],
        "bytes_per_s": 6.4e9,
        "ratios": {"C": 0.625},
    }
    assert case["variants"][3]["failure"] == "wrong result: element 1 is 0, not 1"
    assert case["variants"][3]["median_s"] is None
    assert [goal["ratio"] for goal in case["goals"]] == [0.625, 2.5, None]


@pytest.mark.exhaustive
def test_a_whole_run(tmp_path: Path) -> None:
    """Its kernels are built, give NumPy's result, and are timed. (The other cases are larger.)"""
    numbers = tmp_path / "numbers.json"
    options = ["--case", "block_sums", "--rounds", "1", "--openmp", "none"]
    done = subprocess.run(
        [sys.executable, "-m", "bench.cpu_device", *options, "--json", str(numbers)],
        cwd=REPOSITORY,
        env=process_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (measured,) = json.loads(numbers.read_text())["cases"]
    for timing in measured["variants"]:
        assert timing["failure"] is None
        assert len(timing["seconds"]) == 1
