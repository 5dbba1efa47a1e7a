"""Legality check after a lowering: an error names the illegal operations and their places."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.input.source import Source

_MOST_SHOWN = 5
CAST = "builtin.unrealized_conversion_cast"
_CONVERSION = "a conversion of "


def describe_cast(cast: Any) -> str:
    """A `builtin.unrealized_conversion_cast` that was not lowered, in the user's words."""
    given, made = ([str(one.type) for one in values] for values in (cast.operands, cast.results))
    return f"{_CONVERSION}{', '.join(given) or 'nothing'} to {', '.join(made)}"


def check_lowered(module: Any, source: Source, allowed: tuple[str, ...], *, what: str) -> None:
    """Raises InputError when an operation under `module` is of no dialect in `allowed`."""
    left: dict[str, str] = {}
    for operation in ops.walk(module.operation):
        name = operation.name
        if name == "builtin.module" or name.split(".")[0] in allowed:
            continue
        if name == CAST:
            name = describe_cast(operation)
        place = source.place(operation.location)
        left.setdefault(name, f"{place}: {name}" if place else name)
    if not left:
        return
    # A conversion is left because another operation was not lowered, if there is one.
    casts = [name for name in left if name.startswith(_CONVERSION)]
    for cast in casts if len(casts) < len(left) else ():
        del left[cast]
    shown = list(left.values())[:_MOST_SHOWN]
    more = f"\n  and {len(left) - len(shown)} more" if len(left) > len(shown) else ""
    raise InputError(
        f"aotc cannot lower these operations of the {what}:\n  " + "\n  ".join(shown) + more,
        hint="Lower them first, or give the whole lowering with --pipeline.",
    )
