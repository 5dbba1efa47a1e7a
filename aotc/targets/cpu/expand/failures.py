"""Assertions and traps in kernels → calls of `FAIL`, which end the launch with a message.

`FAILURES` is the table. Each function returns the global that holds the message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aotc.analysis.assertions import compared_by
from aotc.input.source import find_place
from aotc.llvm_ops import call_llvm, llvm_address
from aotc.mlir import ir
from aotc.ops import binary, constant, create_if, integer
from aotc.targets.cpu import build
from aotc.targets.cpu.expand.addresses import to_i64
from aotc.targets.cpu.synchronize import MESSAGE, MESSAGE_BYTES, WRITE, fail

if TYPE_CHECKING:
    from aotc.targets.cpu.thread_function import Ids


def _expand_assertion(assertion: Any, ids: Ids, name: str, symbol: str) -> Any:
    condition = assertion.operands[0]
    compared = compared_by(assertion)
    is_failed = binary("arith.xori", condition, constant(integer(1), 1))
    if compared is not None:
        create_if(is_failed, lambda: _fail(_written(symbol, compared.numbers), ids))
        text = f"assertion failed: {compared.format}"
        return _message(text, assertion.location, name, symbol, is_format=True)
    create_if(is_failed, lambda: _fail(llvm_address(symbol), ids))
    text = ir.StringAttr(assertion.attributes["msg"]).value_bytes.decode(errors="replace")
    return _message(f"assertion failed: {text}", assertion.location, name, symbol)


def _expand_trap(trap: Any, ids: Ids, name: str, symbol: str) -> Any:
    _fail(llvm_address(symbol), ids)
    return _message("trap", trap.location, name, symbol)


def _fail(message: Any, ids: Ids) -> None:
    fail([ids.block, message, *(to_i64(value) for value in ids.thread_id)])


def _written(symbol: str, numbers: Sequence[Any]) -> Any:
    """The thread's message buffer, after a call that formats the numbers into it by the format in
    the global @symbol."""
    buffer, size = llvm_address(MESSAGE), constant(integer(64), MESSAGE_BYTES)
    arguments = [buffer, size, llvm_address(symbol), *(to_i64(number) for number in numbers)]
    type_ = ir.TypeAttr.get(ir.Type.parse("!llvm.func<i32 (ptr, i64, ptr, ...)>"))
    call_llvm(WRITE, arguments, [integer(32)], var_callee_type=type_)
    return buffer


def _message(text: str, location: Any, name: str, symbol: str, *, is_format: bool = False) -> Any:
    """The global @symbol, with a message and its place in the input."""
    place = find_place(str(location), name)
    if place is not None:
        # The message is part of the artifact, so it must not contain the folder.
        file = Path(place.file).name
        where = f" ({file}:{place.line}:{place.column})"
        text += where.replace("%", "%%") if is_format else where
    content = text.replace("\0", "").encode() + b"\0"
    return build.bytes_global(symbol, content)


# Each function takes the operation, the ids, the name of the input, and the global's name.
FAILURES: dict[str, Callable[[Any, Ids, str, str], Any]] = {
    "cf.assert": _expand_assertion,
    "llvm.intr.trap": _expand_trap,
    "llvm.intr.ubsantrap": _expand_trap,
}
