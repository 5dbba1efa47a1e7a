"""Results as text: a table of one run, and a comparison of two."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from aotc.benchmark.results import Results, Row, differs

# A difference is marked if its probability by chance is below one percent, and if it exceeds the
# resolution of a clock.
# is more than a clock's resolution.
SIGNIFICANT = 0.01
LEAST = 0.01


def table(results: Results) -> str:
    """A line for each row: the device time of a call, its spread over the rounds, wall time,
    bandwidth, and the compute rate if it is known."""
    has_flops = any(row.flops is not None for row in results.rows)
    head = ["program", "entry", "n", "device ms", "spread", "wall ms", "GB/s"]
    head += ["GFLOP/s"] if has_flops else []
    if results.ceilings is not None:
        head += ["of copy"]
    lines = [head]
    for row in results.rows:
        if row.failure is not None:
            lines.append([*_names(row), f"failed: {row.failure}"])
            continue
        cells = [
            *_names(row),
            _milliseconds(row.median),
            f"±{100 * _spread(row):.1f} %",
            _milliseconds(statistics.median(row.wall_ms)),
            f"{row.gigabytes_per_second:.1f}",
        ]
        if has_flops:
            cells.append("" if row.gigaflops is None else f"{row.gigaflops:.1f}")
        if results.ceilings is not None:
            part = row.gigabytes_per_second / results.ceilings.gigabytes_per_second
            cells.append(f"{part:.2f}")
        lines.append(cells)
    count = f"{_count(results.rounds, 'round')} of {_count(results.repeat, 'call')}"
    title = f"{results.device}; {count}"
    if results.ceilings is not None:
        title += (
            f"; a copy reaches {results.ceilings.gigabytes_per_second:.0f} GB/s, "
            f"f32 {results.ceilings.gigaflops:.0f} GFLOP/s"
        )
    return "\n".join([title, *_aligned(lines)])


def comparison(old: Results, new: Results) -> str:
    """A line for each row that both have; significant differences are marked faster or slower."""
    before = {row.key: row for row in old.rows}
    lines = [["program", "entry", "n", "before ms", "now ms", "ratio", ""]]
    for row in new.rows:
        other = before.pop(row.key, None)
        if other is None or not row.device_ms or not other.device_ms:
            reason = row.failure or ("not before" if other is None else other.failure or "")
            lines.append([*_names(row), reason])
            continue
        ratio = row.median / other.median if other.median else float("inf")
        lines.append(
            [
                *_names(row),
                _milliseconds(other.median),
                _milliseconds(row.median),
                f"{ratio:.3f}",
                verdict(other, row),
            ]
        )
    lines += [[*_names(row), "not now"] for row in before.values()]
    title = f"{old.device} → {new.device}" if old.device != new.device else new.device
    few = min(old.rounds, new.rounds)
    # The smallest p that is possible with this number of rounds.
    if 2 / math.comb(old.rounds + new.rounds, few) >= SIGNIFICANT:
        closing = f"Nothing can be marked by {old.rounds} and {new.rounds} rounds: 5 of each can."
    else:
        closing = "faster, slower: less than one chance in a hundred that it is none."
    return "\n".join([title, *_aligned(lines), closing])


def verdict(old: Row, new: Row) -> str:
    """`faster`, `slower`, or nothing if the difference may be chance."""
    if differs(old.device_ms, new.device_ms) >= SIGNIFICANT:
        return ""
    if abs(new.median / old.median - 1) < LEAST:
        return ""
    return "faster" if new.median < old.median else "slower"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _names(row: Row) -> list[str]:
    return [row.program, row.entry, "" if row.size is None else str(row.size)]


def _spread(row: Row) -> float:
    """Half of the interquartile range of the rounds, relative to the median."""
    if len(row.device_ms) < 2 or not row.median:
        return 0.0
    low, _, high = statistics.quantiles(row.device_ms, n=4, method="inclusive")
    return (high - low) / 2 / row.median


def _milliseconds(value: float) -> str:
    return f"{value:.4g}" if value < 1000 else f"{value:.0f}"


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns: names to the left, numbers to the right; a last single cell is not cut."""
    columns = len(lines[0])
    whole = [line for line in lines if len(line) == columns]
    widths = [max(len(line[i]) for line in whole) for i in range(columns)]
    for line in lines:
        for i in range(3):
            widths[i] = max(widths[i], len(line[i]))
    texts = []
    for line in lines:
        left = [cell.ljust(widths[i]) for i, cell in enumerate(line[:2])]
        right = [cell.rjust(widths[i]) for i, cell in enumerate(line[2:], 2)]
        if len(line) < columns:
            right = [line[2].rjust(widths[2]), line[3]]
        texts.append("  ".join([*left, *right]).rstrip())
    return texts
