"""Result files of `aotc bench`: the measurements, as values and as JSON."""

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

    `device_ms` and `wall_ms` have the median of each round's calls, in milliseconds. `bytes` is the
    minimum that a call must move: what it reads and what it writes. `flops` is the number of
    operations that the user specified. `size` is None if no sizes were given. `failure` is the
    reason why there are no times.
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
        """The key that identifies the same case in another file."""
        return self.program, self.entry, self.size

    @property
    def median(self) -> float:
        """The device time of a call, in milliseconds: the median of the rounds."""
        return statistics.median(self.device_ms)

    @property
    def gigabytes_per_second(self) -> float:
        return self.bytes / self.median / 1e6 if self.median else 0.0

    @property
    def gigaflops(self) -> float | None:
        """10^9 floating-point operations per second."""
        return None if self.flops is None or not self.median else self.flops / self.median / 1e6


class Ceilings(Struct, frozen=True):
    """The performance of the device in the same run: the bandwidth of a copy in GB/s, read and
    written, and GFLOP/s of fused f32 multiply-adds without tensor cores."""

    gigabytes_per_second: float
    gigaflops: float


class Results(Struct, frozen=True):
    """One run of `aotc bench`: the device, and the number of rounds of `repeat` calls."""

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
    """The content of a pipe, or of a file that, by its beginning, may be a result file; None for
    what may be a program. Raises InputError as `read_file` does."""
    try:
        if not is_special(path):
            with path.open("rb") as file:
                if file.read(1) != b"{":
                    return None
        return read_file(path)
    except OSError:
        return None


def parse_results(text: bytes, path: Path) -> Results:
    """The results in the JSON `text` of a file. Raises InputError for any other text."""
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
    """The probability p that two samples of one distribution differ as much as these, by the exact
    two-sided test of Mann and Whitney (Annals of Mathematical Statistics 18, 1947)."""
    n, m = len(first), len(second)
    if not n or not m:
        return 1.0
    # The number of pairs in which the first is smaller; equal values count half.
    u = sum((a < b) + 0.5 * (a == b) for a in first for b in second)
    smaller = math.ceil(min(u, n * m - u))
    counts = _orders(n, m)
    below = sum(counts[: smaller + 1])
    return min(1.0, 2 * below / sum(counts))


def _orders(n: int, m: int) -> list[int]:
    """For each u from 0 to n·m, the number of orders of n and m numbers that have it, by the
    recurrence of that paper."""
    rows: dict[tuple[int, int], list[int]] = {}
    for i in range(n + 1):
        for j in range(m + 1):
            if i == 0 or j == 0:
                rows[i, j] = [1]
                continue
            found = [0] * (i * j + 1)
            for u, count in enumerate(rows[i - 1, j]):  # the largest is in the first sample
                found[u] += count
            for u, count in enumerate(rows[i, j - 1]):  # in the second: it exceeds all i
                found[u + i] += count
            rows[i, j] = found
    return rows[n, m]
