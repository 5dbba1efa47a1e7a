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
    parts = [*_parts(names, found, "one", "any"), *_parts(names, found, "onnx", "onnx_any")]
    made = "\n\n".join(parts)
    page.write_text(f"{text[:begin]}\n{made}\n{text[end:]}")


def _parts(
    names: Sequence[str], found: dict[tuple[str, str], Any], fixed: str, any_size: str
) -> list[str]:
    """The table of two variants: with one size, and with any batch and length."""
    rows = [_row(name, found, fixed, any_size) for name in names if (name, fixed) in found]
    if not rows:
        return []
    head = "| model | status | error | of eager | any sizes | CPU s | MiB | library, MiB | time |"
    rule = "|---|---|---|---|---|---|---|---|---|"
    reasons = [
        f"- `{name}`{of}: {_reason(found[name, variant]['message'])}"
        for name in names
        for variant, of in ((fixed, ""), (any_size, ", any sizes"))
        if found.get((name, variant), {}).get("message")
    ]
    kinds = [found[name, fixed]["kind"] for name in names if (name, fixed) in found]
    any_ = [found[name, any_size]["kind"] for name in names if (name, any_size) in found]
    any_ = [kind for kind in any_ if kind != "fixed"]
    count = f"{_TITLES[fixed]}: {kinds.count('right')} of {len(kinds)} are right"
    more = f"; with any batch and length, {any_.count('right')} of {len(any_)}."
    table = "\n".join([head, rule, *rows])
    return [count + more, table, *(["Not right:", "\n".join(reasons)] if reasons else [])]


_KINDS_OF_ANY = {"": "not run", "fixed": "one size", "export": "not exported"}
_TITLES = {"one": "From torch.export", "onnx": "From files of ONNX"}


def _row(name: str, found: dict[tuple[str, str], Any], fixed: str, any_size: str) -> str:
    one, other = found[name, fixed], found.get((name, any_size), {})
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
