"""Assertions and traps in kernels → calls of `FAIL`, which end the launch with a message.

`FAILURES` is the table; each function returns the global that holds the message.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aotc.input.source import find_place
from aotc.mlir import ir
from aotc.ops import constant, create, create_if, integer
from aotc.targets.cpu import build
from aotc.targets.cpu.expand.addresses import to_i64
from aotc.targets.cpu.synchronize import fail

if TYPE_CHECKING:
    from aotc.targets.cpu.thread_function import Ids


def _expand_assertion(assertion: Any, ids: Ids, name: str, symbol: str) -> Any:
    text = ir.StringAttr(assertion.attributes["msg"]).value_bytes.decode(errors="replace")
    variable = _message(f"assertion failed: {text}", assertion.location, name, symbol)
    condition = assertion.operands[0]
    is_failed = create("arith.xori", [condition, constant(integer(1), 1)], [condition.type]).result
    create_if(is_failed, lambda: _fail(symbol, ids))
    return variable


def _expand_trap(trap: Any, ids: Ids, name: str, symbol: str) -> Any:
    _fail(symbol, ids)
    return _message("trap", trap.location, name, symbol)


def _fail(symbol: str, ids: Ids) -> None:
    address = create(
        "llvm.mlir.addressof",
        results=[ir.Type.parse("!llvm.ptr")],
        attributes={"global_name": ir.FlatSymbolRefAttr.get(symbol)},
    ).result
    fail([ids.block, address, *(to_i64(value) for value in ids.thread_id)])


def _message(text: str, location: Any, name: str, symbol: str) -> Any:
    """The global @symbol with a message, and its place in the input."""
    place = find_place(str(location), name)
    if place is not None:
        # Into the artifact, hence without its folder.
        text += f" ({Path(place.file).name}:{place.line}:{place.column})"
    content = text.replace("\0", "").encode() + b"\0"
    return build.bytes_global(symbol, content)


# Each takes the operation, the ids, what places call the input, and the global's name.
FAILURES: dict[str, Callable[[Any, Ids, str, str], Any]] = {
    "cf.assert": _expand_assertion,
    "llvm.intr.trap": _expand_trap,
    "llvm.intr.ubsantrap": _expand_trap,
}
