"""Inlines the helper functions in MLIR text that a front end generates, and declares those that it
leaves."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from aotc import ops
from aotc.module_names import CAPABILITY


def inline_helpers(module: Any, kept: Collection[str] = ()) -> Any:
    """Returns the last function of a module, with the calls of the other functions inlined, except
    those in `kept`. Each helper must be called only once."""
    functions = {ops.symbol_of(one.operation): one.operation for one in module.body.operations}
    *_, function = functions.values()
    helpers = functions.keys() - set(kept)
    while calls := [
        one for one in ops.find(function, "func.call") if ops.callee_of(one) in helpers
    ]:
        for call in calls:
            body = functions[ops.callee_of(call)].regions[0].blocks[0]
            ops.replace_by_body(call, body, call.operands)
            ops.erase(call)
    return function


def declare_capability(ir: Any, module: Any) -> None:
    """Declares the function that texts call to ask for a GPU, if they do and it is not declared."""
    calls = ops.find(module.operation, "func.call")
    names = [ops.symbol_of(one) for one in ops.find(module.operation, "func.func")]
    if CAPABILITY not in names and any(ops.callee_of(call) == CAPABILITY for call in calls):
        with ir.Location.unknown():
            parsed = ir.Module.parse(f"func.func private @{CAPABILITY}() -> i32")
            with ir.InsertionPoint(module.body):
                parsed.body.operations[0].operation.clone()
