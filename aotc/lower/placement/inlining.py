"""Inlines functions that pass buffers to kernels into their callers.

If a buffer is in one function, all of its uses between two launches are known. Functions with
several blocks are not inlined, and neither are those that would make the code too large.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.functions import Functions
from aotc.lower.placement.alias_classes import AliasClasses, host_functions
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.rewrites.run import run_pipeline

# The limit of operations that the calls in one function may become.
_MOST_OPERATIONS = 20_000
_NO_INLINE = "no_inline"


def inline_launching_functions(module: Any) -> None:
    """Inlines the calls of functions that pass buffers to kernels, in place."""
    if not ops.find(module.operation, "gpu.launch_func") or not _calls(module):
        return
    wanted = _wanted(module)
    if not wanted:
        return
    kept = [
        function
        for function in host_functions(module)
        if symbol_of(function) not in wanted and _NO_INLINE not in function.attributes
    ]
    for function in kept:
        function.attributes[_NO_INLINE] = ir.UnitAttr.get()
    run_pipeline(module.operation, ("inline{default-pipeline=}",))
    for function in kept:
        del function.attributes[_NO_INLINE]


def _calls(module: Any) -> bool:
    functions = Functions(module)
    calls = ops.find(module.operation, "func.call")
    return any(functions.get(ops.callee_of(call)) is not None for call in calls)


def _wanted(module: Any) -> set[str]:
    alias_classes = AliasClasses(module)
    functions = {symbol_of(op): op for op in host_functions(module)}
    callees = {
        name: [ops.callee_of(call) for call in ops.find(function, "func.call")]
        for name, function in functions.items()
    }
    sizes = _sizes(functions, callees)
    return {
        name
        for name, function in functions.items()
        if sizes.get(name, _MOST_OPERATIONS) < _MOST_OPERATIONS
        and _can_be_inlined(function)
        and _has_buffers_of_kernels(function, alias_classes)
    }


def _sizes(functions: dict[str, Any], callees: dict[str, list[str]]) -> dict[str, int]:
    """Each function's number of operations after inlining, up to the limit; recursive functions
    have the limit."""
    sizes: dict[str, int] = {}
    under_way: set[str] = set()

    def size(name: str) -> int:
        if name not in functions:
            return 0
        if name in under_way:
            return _MOST_OPERATIONS
        if name not in sizes:
            under_way.add(name)
            total = len(ops.walk(functions[name])) + sum(size(c) for c in callees[name])
            under_way.discard(name)
            sizes[name] = min(total, _MOST_OPERATIONS)
        return sizes[name]

    for name in functions:
        size(name)
    return sizes


def _can_be_inlined(function: Any) -> bool:
    inside = ops.walk(function)
    # An alloca would use stack in each iteration of a loop around the call.
    return len(function.regions[0].blocks) == 1 and not any(
        op.name == "memref.alloca" or op.name == "gpu.wait" for op in inside
    )


def _has_buffers_of_kernels(function: Any, alias_classes: AliasClasses) -> bool:
    end = ops.terminator(function.regions[0].blocks[0])
    passed = [*function.regions[0].blocks[0].arguments, *end.operands]
    return any(
        value in alias_classes and alias_classes.get(value).reaches_launch for value in passed
    )
