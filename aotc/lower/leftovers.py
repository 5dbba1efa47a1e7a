"""What a lowering left behind: an error that names the operations and their places."""

from __future__ import annotations

from typing import Any

from aotc.errors import InternalError
from aotc.load.source import Source
from aotc.lower import ops

_MOST_SHOWN = 5


def check_lowered(module: Any, source: Source, allowed: tuple[str, ...], *, what: str) -> None:
    """Raises InternalError when an operation under `module` is of no dialect in `allowed`."""
    left: dict[str, str] = {}
    for operation in ops.walk(module.operation):
        name = operation.name
        if name == "builtin.module" or name.split(".")[0] in allowed:
            continue
        place = source.place(operation.location)
        left.setdefault(name, f"{place}: {name}" if place else name)
    if not left:
        return
    shown = list(left.values())[:_MOST_SHOWN]
    more = f"\n  and {len(left) - len(shown)} more" if len(left) > len(shown) else ""
    raise InternalError(
        f"aotc cannot lower these operations of the {what}:\n  " + "\n  ".join(shown) + more,
        hint="Lower them first, or give the whole lowering with --pipeline.",
    )


# Operations whose lowering calls functions that no aotc program has.
_UNLINKED = {"vector.print": "it calls MLIR's runner utilities, which aotc does not link"}


def check_supported(source: Source) -> None:
    """Raises InternalError for operations that lower to something that cannot be linked."""
    for operation in ops.walk(source.module.operation):
        reason = _UNLINKED.get(operation.name)
        if reason is not None and ops.enclosing(operation, "gpu.module") is None:
            place = source.place(operation.location)
            raise InternalError(f"{place}: {operation.name} is not supported: {reason}.")
