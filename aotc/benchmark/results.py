"""Result files of `aotc bench`: what was measured, as values and as JSON."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import MsgspecError, Struct

from aotc.errors import InputError
from aotc.pipes import is_special, read_file

FORMAT = "aotc-bench"
VERSION = 1


class Row(Struct, frozen=True):
    """An entry of a program at a size.

    `device_ms` and `wall_ms` have the median of each round's calls, in milliseconds. `bytes` is
    the least that a call must move: what it reads, and what it writes; `flops` what the user says
    that it computes. `size` is None where no sizes were asked for. `failure` is why there are no
    times.
    """

    program: str
    entry: str
    size: int | None
    device_ms: tuple[float, ...] = ()
    wall_ms: tuple[float, ...] = ()
    bytes: int = 0
    flops: float | None = None
    failure: str | None = None

    @property
    def key(self) -> tuple[str, str, int | None]:
        """What it has in common with the same in another file."""
        return self.program, self.entry, self.size

    @property
    def median(self) -> float:
        """The device's time of a call, in milliseconds: the median of the rounds'."""
        return statistics.median(self.device_ms)

    @property
    def gigabytes_per_second(self) -> float:
        return self.bytes / self.median / 1e6 if self.median else 0.0

    @property
    def gigaflops(self) -> float | None:
        """10^9 floating-point operations per second."""
        return None if self.flops is None or not self.median else self.flops / self.median / 1e6


class Ceilings(Struct, frozen=True):
    """What the device reached in the same run: a copy's bandwidth in GB/s, read and written, and
    GFLOP/s of fused f32 multiply-adds without tensor cores."""

    gigabytes_per_second: float
    gigaflops: float


class Results(Struct, frozen=True):
    """One run of `aotc bench`: on which device, with how many rounds of `repeat` calls."""

    aotc: str
    device: str
    repeat: int
    rounds: int
    rows: tuple[Row, ...]
    ceilings: Ceilings | None = None

    def to_json(self) -> str:
        return (
            json.dumps(
                {"format": FORMAT, "version": VERSION, **msgspec.to_builtins(self)}, indent=2
            )
            + "\n"
        )


def results_text(path: Path) -> bytes | None:
    """What is in a file that may be one of results, by its beginning, or in a pipe; None for what
    may be a program. Raises InputError as `read_file` does."""
    try:
        if not is_special(path):
            with path.open("rb") as file:
                if file.read(1) != b"{":
                    return None
        return read_file(path)
    except OSError:
        return None


def parse_results(text: bytes, path: Path) -> Results:
    """The results that are the JSON `text` of a file. Raises InputError for another."""
    try:
        document: dict[str, Any] = json.loads(text)
        if document.pop("format") != FORMAT:
            raise ValueError
        version = document.pop("version")
        if version != VERSION:
            raise InputError(
                f"'{path}' has results of version {version}; this aotc reads {VERSION}."
            )
        return msgspec.convert(document, Results)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, MsgspecError):
        raise InputError(f"'{path}' has no results of aotc bench.") from None


def differs(first: Sequence[float], second: Sequence[float]) -> float:
    """How likely it is that two samples of one distribution lie as far apart as these: p, by the
    exact two-sided test of Mann and Whitney (Annals of Mathematical Statistics 18, 1947)."""
    n, m = len(first), len(second)
    if not n or not m:
        return 1.0
    # In how many of all pairs the first is smaller; what is equal counts half.
    u = sum((a < b) + 0.5 * (a == b) for a in first for b in second)
    smaller = math.ceil(min(u, n * m - u))
    counts = _orders(n, m)
    below = sum(counts[: smaller + 1])
    return min(1.0, 2 * below / sum(counts))


def _orders(n: int, m: int) -> list[int]:
    """For each u from 0 to n·m: how many orders of n and m numbers have it (their recurrence)."""
    rows: dict[tuple[int, int], list[int]] = {}
    for i in range(n + 1):
        for j in range(m + 1):
            if i == 0 or j == 0:
                rows[i, j] = [1]
                continue
            found = [0] * (i * j + 1)
            for u, count in enumerate(rows[i - 1, j]):  # the largest is of the first sample
                found[u] += count
            for u, count in enumerate(rows[i, j - 1]):  # of the second: larger than all i
                found[u + i] += count
            rows[i, j] = found
    return rows[n, m]
