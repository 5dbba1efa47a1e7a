"""Results → the tables of docs/models.md, between two marks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.models.engines import ENGINES, OURS
from bench.models.results import Result, Row, geometric_mean, without_folders

_MEASURES = ("wall", "cpu")


def write_table(page: Path, what: str, tables: str) -> None:
    """Puts the tables into the page, in the place of those of `what` that are there."""
    text = page.read_text()
    begin = text.index(mark := f"<!-- {what} of bench.models: begin -->") + len(mark)
    end = text.index(f"<!-- {what} of bench.models: end -->")
    page.write_text(f"{text[:begin]}\n{tables}\n{text[end:]}")


def tables(rows: Sequence[Row]) -> str:
    """A table for each number of threads and batch."""
    kinds = dict.fromkeys((row.threads, row.batch) for row in rows)
    return "\n\n".join(
        _table([row for row in rows if (row.threads, row.batch) == kind]) for kind in kinds
    )


def _table(rows: Sequence[Row]) -> str:
    ratios = ("aotc / best", "of CPU ms")
    engines = [name for name in ENGINES if any(name in row.results for row in rows)]
    heads = ["model", "batch", *engines, *ratios, "build, CPU s", "library, MiB"]
    lines = [
        _line(heads),
        "|" + "---|" * len(heads),
        *(_line(_cells(row, engines)) for row in rows),
    ]
    known = ([row.ratio(one) for row in rows] for one in _MEASURES)
    means = [
        _number(geometric_mean(one for one in column if one is not None), 2) for column in known
    ]
    lines.append(_line(["geometric mean", "", *("" for _ in engines), *means, "", ""]))
    count = rows[0].threads
    title = f"{count} thread{'s' if count > 1 else ''}, batch {rows[0].batch}:"
    reasons = _reasons(rows)
    return "\n\n".join([title, "\n".join(lines), *(["\n".join(reasons)] if reasons else [])])


def _reasons(rows: Sequence[Row]) -> list[str]:
    """Why results are missing, and of how many models."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for name, one in row.results.items():
            if one.failure:
                found.setdefault((name, _escaped(one.failure)), []).append(row.model)
    return [
        f"- `{models[0]}`{f' and {len(models) - 1} more' if models[1:] else ''}, {name}: {failure}"
        for (name, failure), models in found.items()
    ]


def _cells(row: Row, engines: Sequence[str]) -> list[str]:
    ours = row.results.get(OURS)
    return [
        row.model,
        str(row.batch),
        *(_times(row.results.get(name)) for name in engines),
        *(_number(row.ratio(measure), 2) for measure in _MEASURES),
        _number(ours.build if ours else None, 1),
        _number(ours.size if ours else None, 1),
    ]


def _times(result: Result | None) -> str:
    """Milliseconds on the wall, and, in brackets, of processors."""
    if result is None or result.wall is None or result.cpu is None:
        return "" if result is None else "none"
    wall, cpu = (_number(one, 3 if one < 1 else 2 if one < 10 else 1)
                 for one in (result.wall, result.cpu))  # fmt: skip
    return f"{wall} ({cpu})"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(message: str) -> str:
    return without_folders(message).replace("|", "\\|").replace("<", "&lt;")[:160]
