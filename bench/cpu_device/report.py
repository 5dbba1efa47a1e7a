"""Timings → the table for people, and the JSON with all numbers."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cpu_device.cases import Case, Goal
from bench.measure import Timing, ratio


@dataclass(frozen=True)
class Setting:
    """What the numbers hold for. `versions` are of aotc and the tools that matter."""

    threads: int
    threading: str
    rounds: int
    optimization: str
    target: str
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Outcome:
    """One case, measured: a timing for each of its variants, in order."""

    case: Case
    timings: Sequence[Timing]

    def timing(self, name: str) -> Timing:
        return next(timing for timing in self.timings if timing.name == name)

    def reached(self, goal: Goal) -> float | None:
        """The ratio that the goal limits; None where it could not be measured."""
        return ratio(self.timing(goal.of), self.timing(goal.to))

    def bandwidth(self, timing: Timing) -> float | None:
        """Bytes per second, for cases that move more than caches hold."""
        if self.case.bytes_moved is None or not timing.seconds:
            return None
        return self.case.bytes_moved / timing.median


def machine() -> dict[str, Any]:
    """What was measured on: processor, cores, and what else keeps it busy."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            model = value.strip()
            break
    return {
        "processor": model,
        "usable_cpus": len(os.sched_getaffinity(0)),
        "load_average": round(os.getloadavg()[0], 2),
    }


def to_text(setting: Setting, outcomes: Sequence[Outcome]) -> str:
    here = machine()
    versions = ", ".join(f"{name} {version}" for name, version in setting.versions.items())
    lines = [
        f"{here['processor']}, {here['usable_cpus']} usable CPUs; load average "
        f"{here['load_average']}",
        f"{versions}; {setting.optimization}, {setting.target}",
        f"{setting.threads} threads, C loops by {setting.threading}; medians of {setting.rounds} "
        "rounds, in turns; ratios: median over the rounds",
    ]
    for outcome in outcomes:
        lines += ["", *_case_lines(outcome)]
    goals = [(outcome, goal) for outcome in outcomes for goal in outcome.case.goals]
    if goals:
        lines += ["", "Goals"]
        lines += _aligned([_goal_cells(outcome, goal) for outcome, goal in goals], left=1)
    return "\n".join(lines) + "\n"


def _case_lines(outcome: Outcome) -> list[str]:
    case = outcome.case
    has_bandwidth = case.bytes_moved is not None
    header = ["", "median", "fastest", "slowest", *(["GB/s"] if has_bandwidth else [])]
    rows = [[*header, *(f"/ {name}" for name in case.references)]]
    failures = []
    for timing in outcome.timings:
        if timing.failure is not None:
            failures.append(f"  {timing.name}: {timing.failure}")
            continue
        times = (timing.median, timing.fastest, timing.slowest)
        cells = [timing.name, *(f"{1e3 * t:.2f} ms" for t in times)]
        bandwidth = outcome.bandwidth(timing)
        cells += [f"{bandwidth / 1e9:.1f}"] if bandwidth is not None else []
        rows.append([*cells, *(_number(ratio(timing, outcome.timing(n))) for n in case.references)])
    return [f"{case.name}: {case.title}", *_aligned(rows, left=1), *failures]


def _goal_cells(outcome: Outcome, goal: Goal) -> list[str]:
    value = outcome.reached(goal)
    verdict = "not measured" if value is None else "met" if value <= goal.limit else "missed"
    what = f"{outcome.case.name}: {goal.of} / {goal.to}"
    return [what, _number(value), f"at most {goal.limit:g}", verdict]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _aligned(rows: Sequence[Sequence[str]], *, left: int) -> list[str]:
    """Rows as lines: the first `left` columns flush left, the others flush right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def to_json(setting: Setting, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "machine": machine(),
        "setting": {
            "threads": setting.threads,
            "threading_of_c": setting.threading,
            "rounds": setting.rounds,
            "optimization": setting.optimization,
            "target": setting.target,
            "versions": dict(setting.versions),
        },
        "cases": [_case_json(outcome) for outcome in outcomes],
    }


def _case_json(outcome: Outcome) -> dict[str, Any]:
    case = outcome.case
    return {
        "name": case.name,
        "title": case.title,
        "variants": [
            {
                "name": timing.name,
                "failure": timing.failure,
                "median_s": timing.median if timing.seconds else None,
                "seconds": list(timing.seconds),
                "bytes_per_s": outcome.bandwidth(timing),
                "ratios": {n: ratio(timing, outcome.timing(n)) for n in case.references},
            }
            for timing in outcome.timings
        ],
        "goals": [
            {"of": g.of, "to": g.to, "limit": g.limit, "ratio": outcome.reached(g)}
            for g in case.goals
        ],
    }
