"""What a lowering left behind: an error that names the operations and their places."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.input.source import Source

_MOST_SHOWN = 5
_CAST = "builtin.unrealized_conversion_cast"


def check_lowered(module: Any, source: Source, allowed: tuple[str, ...], *, what: str) -> None:
    """Raises InputError when an operation under `module` is of no dialect in `allowed`."""
    left: dict[str, str] = {}
    for operation in ops.walk(module.operation):
        name = operation.name
        if name == "builtin.module" or name.split(".")[0] in allowed:
            continue
        place = source.place(operation.location)
        left.setdefault(name, f"{place}: {name}" if place else name)
    if not left:
        return
    if len(left) > 1:
        left.pop(_CAST, None)  # it is left for the sake of another one
    shown = list(left.values())[:_MOST_SHOWN]
    more = f"\n  and {len(left) - len(shown)} more" if len(left) > len(shown) else ""
    raise InputError(
        f"aotc cannot lower these operations of the {what}:\n  " + "\n  ".join(shown) + more,
        hint="Lower them first, or give the whole lowering with --pipeline.",
    )
