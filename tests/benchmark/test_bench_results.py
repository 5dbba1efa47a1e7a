"""Results of `aotc bench`: kept, compared, and told; what differs by chance is not marked."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from aotc.benchmark.expressions import evaluate
from aotc.benchmark.programs import parse_sizes
from aotc.benchmark.results import (
    Ceilings,
    Results,
    Row,
    differs,
    parse_results,
    results_text,
)
from aotc.benchmark.tables import comparison, table, verdict
from aotc.errors import InputError

FAST = (1.00, 1.01, 1.02, 1.03, 1.04)
SLOW = (1.30, 1.31, 1.32, 1.33, 1.34)
NOISY = (0.90, 1.50, 1.015, 1.45, 0.95)


def row(times: tuple[float, ...], *, entry: str = "f", size: int | None = 8) -> Row:
    return Row("p", entry, size, times, times, bytes=1_000_000)


def results(*rows: Row, ceilings: Ceilings | None = None, device: str = "H200") -> Results:
    return Results("0.1.0", device, 20, 5, rows, ceilings)


def by_force(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    """The exact p, by all ways to part the numbers into two samples."""

    def u(a: tuple[float, ...], b: tuple[float, ...]) -> float:
        return sum((x < y) + 0.5 * (x == y) for x in a for y in b)

    n, m = len(first), len(second)
    together = first + second
    least = min(u(first, second), n * m - u(first, second))
    found = 0
    ways = list(itertools.combinations(range(n + m), n))
    for way in ways:
        a = tuple(together[i] for i in way)
        b = tuple(together[i] for i in range(n + m) if i not in way)
        found += min(u(a, b), n * m - u(a, b)) <= least
    return found / len(ways)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (FAST, SLOW),
        (FAST, NOISY),
        ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)),
        ((1.0, 4.0), (2.0, 3.0, 5.0, 6.0)),
        ((1.0,), (2.0,)),
    ],
)
def test_the_test_is_exact(first: tuple[float, ...], second: tuple[float, ...]) -> None:
    assert differs(first, second) == pytest.approx(by_force(first, second))
    assert differs(second, first) == pytest.approx(by_force(first, second))


def test_nothing_differs_from_itself() -> None:
    assert differs(FAST, FAST) == 1.0
    assert differs((), FAST) == 1.0


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (FAST, SLOW, "slower"),
        (SLOW, FAST, "faster"),
        (FAST, NOISY, ""),
        # Beyond doubt, but by half a percent.
        (FAST, tuple(1.05 + t / 1e4 for t in FAST), "slower"),
        ((1.0, 1.0001, 1.0002, 1.0003, 1.0004), (1.005, 1.0051, 1.0052, 1.0053, 1.0054), ""),
        # Too few to tell.
        (FAST[:3], SLOW[:3], ""),
    ],
)
def test_what_is_marked(old: tuple[float, ...], new: tuple[float, ...], word: str) -> None:
    assert verdict(row(old), row(new)) == word


def test_a_comparison_has_every_row() -> None:
    old = results(row(FAST), row(FAST, entry="gone"))
    new = results(row(SLOW), row(FAST, entry="new"))
    lines = comparison(old, new).splitlines()
    assert lines[0] == "H200"
    assert lines[2].split() == ["p", "f", "8", "1.02", "1.32", "1.294", "slower"]
    assert lines[3].split(maxsplit=3) == ["p", "new", "8", "not before"]
    assert lines[4].split(maxsplit=3) == ["p", "gone", "8", "not now"]
    assert lines[5].startswith("faster, slower: less than one chance in a hundred")
    few = Results("0.1.0", "H200", 20, 3, (row(FAST[:3]),))
    assert comparison(few, few).endswith("Nothing can be marked by 3 and 3 rounds: 5 of each can.")
    other = comparison(old, results(row(SLOW), device="cpu (2 threads)"))
    assert other.startswith("H200 → cpu (2 threads)\n")


def test_a_table() -> None:
    failed = Row("p", "g", None, failure="p: error: no")
    with_flops = Row("p", "f", 8, FAST, FAST, bytes=1_020_000, flops=2_040_000)
    text = table(results(with_flops, failed, ceilings=Ceilings(2.0, 10.0)))
    title, head, first, second = text.splitlines()
    assert title == "H200; 5 rounds of 20 calls; a copy reaches 2 GB/s, f32 10 GFLOP/s"
    assert head.split("  ")[-1] == "of copy"
    # 1.02 MB in 1.02 ms; the quartiles are 0.02 ms apart.
    assert first.split() == ["p", "f", "8", "1.02", "±1.0", "%", "1.02", "1.0", "2.0", "0.50"]
    assert second.split(maxsplit=2) == ["p", "g", "failed: p: error: no"]


def test_a_file_of_results(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    made = results(row(FAST), Row("p", "g", None, failure="no"), ceilings=Ceilings(2.0, 10.0))
    file.write_text(made.to_json())
    assert results_text(file) is not None
    assert parse_results(file.read_bytes(), file) == made


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"format": "x"}', "{nothing", '{"format": "aotc-bench", "version": 1}'],
)
def test_another_file(text: str, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text(text)
    with pytest.raises(InputError, match=r"r\.json' has no results of aotc bench\.$"):
        parse_results(file.read_bytes(), file)


def test_a_newer_file(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text(results().to_json().replace('"version": 1', '"version": 2'))
    with pytest.raises(InputError, match=r"results of version 2; this aotc reads 1"):
        parse_results(file.read_bytes(), file)


@pytest.mark.parametrize(
    ("text", "value"),
    [("2*n**3", 2000.0), ("(n + 2) * 4 // 5", 9.0), ("-n / 4", -2.5), ("1e9", 1e9)],
)
def test_expressions(text: str, value: float) -> None:
    assert evaluate(text, {"n": 10.0}) == value


@pytest.mark.parametrize(
    "text",
    [
        *("", "m", "n n", "__import__('os')", "n.real", "[n]", "n if n else 1", "True", "'n'"),
        *("2**n**n", "1/0", "n(1)", "lambda: n", "(" * 300 + ")" * 300, "9" * 5000),
    ],
)
def test_what_is_no_expression(text: str) -> None:
    """Not a word of Python's but these is heard."""
    with pytest.raises(
        InputError, match=r"is no expression: use numbers, n, \+ - \* / // \*\* and"
    ):
        evaluate(text, {"n": 100.0})


def test_sizes() -> None:
    assert parse_sizes(["1000", "4K", "1m", "2G"]) == (1000, 4096, 1 << 20, 2 << 30)
    for word in ("", "0", "-1", "K", "1.5K", "x"):
        with pytest.raises(InputError, match=r"^--sizes "):
            parse_sizes([word])
