"""Runs executables that aotc built: their entries alternately, for several rounds."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from aotc.benchmark.expressions import evaluate
from aotc.benchmark.results import Results, Row
from aotc.errors import InputError
from aotc.version import __version__

# The bytes of NumPy types, by the names in the programs' reports.
_BYTES = {"bool": 1, "bfloat16": 2}
# Exceptions of parsing text that is not JSON, or not a report.
_OTHER_TEXT = (ValueError, KeyError, TypeError, RecursionError)


class Plan(Struct, frozen=True):
    """The runs: `programs`, with `arguments` for each, in which {n} stands for a size.

    `entries` are the requested entries, by default all. `flops` and `bytes` are expressions of n.
    """

    programs: tuple[Path, ...]
    arguments: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    repeat: int = 20
    warmup: int = 3
    rounds: int = 5
    device: str | None = None
    flops: str | None = None
    bytes: str | None = None


class _Case(Struct):
    """One entry at one size, and the reports of its rounds."""

    program: Path
    name: str
    entry: str
    is_only_entry: bool
    size: int | None
    values: Mapping[str, Any]
    reports: list[dict[str, Any]] = field(default_factory=list)
    failure: str | None = None


def run_programs(plan: Plan, tell: Callable[[str], None] = lambda line: None) -> Results:
    """Runs all cases; `tell` is called with the name of each case before it runs. A program that
    fails has a row with the reason. Raises InputError for files that are not programs of aotc, and
    for options that no program accepts."""
    if not plan.sizes and any("{n}" in word for word in plan.arguments):
        raise InputError("{n} stands for a size: say which with --sizes.")
    names = [program.name for program in plan.programs]
    cases = [
        case
        for program in plan.programs
        # Programs with the same name are distinguished by their paths.
        for case in _cases(
            program, program.name if names.count(program.name) == 1 else str(program), plan
        )
    ]
    for number in range(plan.rounds):
        # Rotates the order, so that no case always follows the same one.
        start = number % len(cases)
        for case in (*cases[start:], *cases[:start]):
            if case.failure is None:
                size = "" if case.size is None else f" n={case.size}"
                tell(f"round {number + 1} of {plan.rounds}: {case.name} {case.entry}{size}")
                _call(case, plan)
    reports = [report for case in cases for report in case.reports]
    devices = list(dict.fromkeys(_device(report) for report in reports))
    return Results(
        aotc=__version__,
        device=", ".join(devices) or "none",
        repeat=plan.repeat,
        rounds=plan.rounds,
        rows=tuple(_row(case, plan) for case in cases),
    )


def _cases(program: Path, label: str, plan: Plan) -> list[_Case]:
    values = _describe(program)
    entries = {entry["name"]: entry for entry in values["entries"]}
    unknown = [name for name in plan.entries if name not in entries]
    if unknown:
        raise InputError(
            f"'{program}' has no entry {', '.join(unknown)}. It has: {', '.join(entries)}."
        )
    wanted = plan.entries or tuple(entries)
    sizes: tuple[int | None, ...] = plan.sizes or (None,)
    return [
        _Case(program, label, name, len(entries) == 1, size, entries[name])
        for name in wanted
        for size in sizes
    ]


def _describe(program: Path) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [os.path.abspath(program), "--describe", "--json"],  # noqa: PTH100
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=True,
        )
        values: dict[str, Any] = json.loads(done.stdout)
        [str(entry["name"]) for entry in values["entries"]]
    except (OSError, subprocess.SubprocessError, *_OTHER_TEXT) as error:
        reason = error.strerror if isinstance(error, OSError) else "it does not describe itself"
        if isinstance(error, PermissionError) and program.is_file():
            reason = "it is not executable"
        raise InputError(f"'{program}' is no program that aotc made: {reason}.") from None
    return values


def _call(case: _Case, plan: Plan) -> None:
    words = [word.replace("{n}", str(case.size)) for word in plan.arguments]
    command = [
        os.path.abspath(case.program),  # noqa: PTH100
        *([] if case.is_only_entry else [case.entry]),
        *words,
        *("--repeat", str(plan.repeat), "--warmup", str(plan.warmup), "--json"),
        *([] if plan.device is None else ["--device", plan.device]),
    ]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode == 0:
        try:
            case.reports.append(json.loads(done.stdout))
            return
        except _OTHER_TEXT:
            pass
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    case.failure = lines[0] if lines else f"it ended with {done.returncode}"


def _device(report: Mapping[str, Any]) -> str:
    device = report["device"]
    if device["kind"] == "cpu":
        return f"cpu ({device['multiprocessors']} threads)"
    return str(device["name"])


def _row(case: _Case, plan: Plan) -> Row:
    names = {} if case.size is None else {"n": float(case.size)}
    if case.failure is not None or not case.reports:
        return Row(case.name, case.entry, case.size, failure=case.failure)
    least = _least_bytes(case.values, case.reports[0])
    return Row(
        case.name,
        case.entry,
        case.size,
        tuple(report["times"]["device_ms"]["median"] for report in case.reports),
        tuple(report["times"]["wall_ms"]["median"] for report in case.reports),
        least if plan.bytes is None else round(evaluate(plan.bytes, names)),
        None if plan.flops is None else evaluate(plan.flops, names),
    )


def _least_bytes(entry: Mapping[str, Any], report: Mapping[str, Any]) -> int:
    """The bytes of buffers that are read and written, each counted once."""
    # A report has no access information for scalars.
    uses = {
        one["name"]: one.get("is_read", False) + one.get("is_written", False)
        for one in entry["arguments"]
    }
    total = sum(_size(one) * uses.get(one["name"], 0) for one in report["arguments"])
    returned = [one for one in report["results"] if one["name"] not in uses]
    return int(total + sum(map(_size, returned)))


def _size(value: Mapping[str, Any]) -> int:
    if not value["shape"]:
        return 0  # a scalar
    name = value["dtype"]
    digits = "".join(filter(str.isdigit, name))
    element = _BYTES.get(name) or int(digits or 64) // 8
    count: int = math.prod(value["shape"])
    return int(count * element)


def words_of(arguments: str) -> tuple[str, ...]:
    """The words of --args, split as a shell does. Raises InputError for an unclosed quotation."""
    try:
        return tuple(shlex.split(arguments))
    except ValueError as error:
        raise InputError(f"--args {arguments}: {str(error).lower()}.") from None


def parse_sizes(words: Sequence[str]) -> tuple[int, ...]:
    """Parses sizes: `256`, `4K`, `1M`, `2G`, with powers of two. Raises InputError for others."""
    sizes = []
    for word in words:
        number, factor = word, 1
        if word[-1:].upper() in ("K", "M", "G"):
            number, factor = word[:-1], 1 << (10 * (1 + "KMG".index(word[-1].upper())))
        if not re.fullmatch(r"[0-9]{1,18}", number) or int(number) == 0:
            raise InputError(f"--sizes {word}: expected sizes such as 1000, 64K, 16M.")
        sizes.append(int(number) * factor)
    return tuple(sizes)
