"""What `measure` wrote → the table of docs/models.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.models.results import geometric_mean, without_folders

ENGINES = {
    "aotc": "aotc",
    "aotc_captured": "aotc, captured",
    "eager": "eager",
    "captured": "eager, captured",
    "compile": "compile",
    "reduce_overhead": "reduce-overhead",
    "autotune": "max-autotune",
}

Row = dict[str, Any]


def read(files: Iterable[Path]) -> list[Row]:
    """The rows of several runs, of one model behind each other; the last one of a model, type and
    batch counts."""
    found: dict[tuple[str, str, int, bool], Row] = {}
    for file in files:
        for row in json.loads(file.read_text()):
            if "engines" in row:
                found[row["model"], row["dtype"], row["batch"], row["of_any"]] = row
    models = list(dict.fromkeys(model for model, *_ in found))
    return [found[key] for key in sorted(found, key=lambda key: (models.index(key[0]), *key[1:]))]


def ratio(row: Row) -> float | None:
    """aotc's time, captured where that was measured, in that of the fastest other engine."""
    times = {name: one["us"] for name, one in row["engines"].items() if "us" in one}
    plain, captured = (times.pop(name, None) for name in ("aotc", "aotc_captured"))
    ours = plain if captured is None else captured
    return ours / min(times.values()) if times and ours is not None else None


def table(rows: Sequence[Row]) -> str:
    names = [name for name in ENGINES if any(name in row["engines"] for row in rows)]
    measured = [
        name for name in names if any("MiB" in row["engines"].get(name, {}) for row in rows)
    ]
    heads = ["model", "type", "batch", *(f"{ENGINES[name]}, µs" for name in names), "aotc / best"]
    heads += ["error", "of eager", *(f"MiB, {ENGINES[name]}" for name in measured)]
    lines = [_line(heads), "|" + "---|" * len(heads)]
    for row in rows:
        of = row["engines"]
        errors = (of.get(name, {}).get("error") for name in ("aotc", "eager"))
        cells = [row["model"], row["dtype"], _batch(row)]
        cells += [_number(of.get(name, {}).get("us"), 0) for name in names]
        cells += [_number(ratio(row), 2), *("" if one is None else f"{one:.1e}" for one in errors)]
        cells += [_number(of.get(name, {}).get("MiB"), 0) for name in measured]
        lines.append(_line(cells))
    known = [one for one in map(ratio, rows) if one is not None]
    mean = _number(geometric_mean(known), 2)
    lines.append(
        _line(["geometric mean", *[""] * (2 + len(names)), mean, *[""] * (2 + len(measured))])
    )
    reasons = [
        f"- `{row['model']}` in {row['dtype']}, batch {_batch(row)}, {name}: "
        + _text(one["failure"])
        for row in rows
        for name, one in row["engines"].items()
        if "failure" in one
    ]
    return "\n\n".join(["\n".join(lines), *(["\n".join(reasons)] if reasons else [])])


def _text(failure: str) -> str:
    """Of one line, without what Markdown would take for its own."""
    line = " ".join(without_folders(failure).split())
    return line.replace("|", "\\|").replace("<", "&lt;")[:160]


def _batch(row: Row) -> str:
    kind = {"": "", "batch": ", of any", "size": ", any size"}
    # Older results have a bool.
    of_any = row["of_any"] if isinstance(row["of_any"], str) else "batch" * row["of_any"]
    return f"{row['batch']}{kind[of_any]}"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
