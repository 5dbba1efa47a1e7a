"""Clones functions that parallel code calls, so that the loops of the clones stay sequential.

A function may be called by the host, where its parallel loops become launches, and by the body of a
parallel loop or a `gpu.launch`, where they cannot. Such bodies call a clone.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.input.entries import ENTRY_ATTRIBUTE
from aotc.mlir import ir
from aotc.ops import symbol_of

_PARALLEL_BODIES = ("scf.parallel", "gpu.launch")


def separate_device_functions(module: Any) -> frozenset[str]:
    """Redirects calls in parallel bodies to clones. Returns the names of the clones."""
    with module.context:
        functions = {
            symbol_of(op.operation): op.operation
            for op in ops.body_of_module(module).operations
            if op.operation.name == "func.func" and op.operation.regions[0].blocks
        }
        copies: dict[str, Any] = {}
        pending = [
            call
            for call in ops.find(module.operation, "func.call")
            if ops.enclosing(call, *_PARALLEL_BODIES) is not None
            and ops.enclosing(call, "gpu.module") is None
        ]
        while pending:
            call = pending.pop()
            name = ops.callee_of(call)
            if name not in functions:
                continue
            if name not in copies:
                copies[name] = _copy(module, functions[name], set(functions))
                pending += ops.find(copies[name], "func.call")
            call.attributes["callee"] = ir.FlatSymbolRefAttr.get(symbol_of(copies[name]))
        return frozenset(symbol_of(copy) for copy in copies.values())


def _copy(module: Any, function: Any, taken: set[str]) -> Any:
    name = f"{symbol_of(function)}_device"
    while name in taken:
        name += "_"
    taken.add(name)
    copy = function.clone().operation
    copy.attributes["sym_name"] = ir.StringAttr.get(name)
    copy.attributes["sym_visibility"] = ir.StringAttr.get("private")
    if ENTRY_ATTRIBUTE in copy.attributes:
        del copy.attributes[ENTRY_ATTRIBUTE]
    ops.body_of_module(module).append(copy)
    return copy
