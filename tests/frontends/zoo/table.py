"""Results → the tables of docs/models.md, between two marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

_BEGIN, _END = "<!-- made by make models: begin -->", "<!-- end -->"


def write_table(page: Path, names: Sequence[str], results: Iterable[dict[str, Any]]) -> None:
    """Puts the tables into the page, in the place of those that are there."""
    found = {(one["name"], one["variant"]): one for one in results}
    text = page.read_text()
    begin, end = text.index(_BEGIN) + len(_BEGIN), text.index(_END)
    made = "\n\n".join(_parts(names, found))
    page.write_text(f"{text[:begin]}\n{made}\n{text[end:]}")


def _parts(names: Sequence[str], found: dict[tuple[str, str], Any]) -> list[str]:
    rows = [_row(name, found) for name in names if (name, "one") in found]
    head = "| model | status | error | of eager | any sizes | CPU s | MiB | library, MiB | time |"
    rule = "|---|---|---|---|---|---|---|---|---|"
    reasons = [
        f"- `{name}`{_OF[variant]}: {_reason(found[name, variant]['message'])}"
        for name in names
        for variant in _OF
        if found.get((name, variant), {}).get("message")
    ]
    kinds = [found[name, "one"]["kind"] for name in names if (name, "one") in found]
    any_ = [found[name, "any"]["kind"] for name in names if (name, "any") in found]
    any_ = [kind for kind in any_ if kind != "fixed"]
    count = f"{kinds.count('right')} of {len(kinds)} are right"
    more = f"; with any batch and length, {any_.count('right')} of {len(any_)}."
    table = "\n".join([head, rule, *rows])
    return [count + more, table, *(["Not right:", "\n".join(reasons)] if reasons else [])]


_KINDS_OF_ANY = {"": "not run", "fixed": "one size", "export": "not exported"}
_OF = {"one": "", "any": ", any sizes"}


def _row(name: str, found: dict[tuple[str, str], Any]) -> str:
    one, other = found[name, "one"], found.get((name, "any"), {})
    cells = [
        name,
        one["kind"],
        _number(one.get("error"), ".1e"),
        _number(one.get("eager"), ".1e"),
        _KINDS_OF_ANY.get(other.get("kind", ""), other.get("kind", "")),
        _number(one.get("cpu"), ".1f"),
        _number(one.get("memory"), ".0f"),
        _number(one.get("size"), ".1f"),
        _number(one.get("time"), ".2f"),
    ]
    return f"| {' | '.join(cells)} |"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _reason(message: str) -> str:
    """Its first line that says something, without folders of the machine."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    line = re.sub(r"(/[\w.+-]+)+/(?=[\w.-]+)", "", lines[0])
    return line.replace("|", "\\|").replace("<", "&lt;")[:200]
