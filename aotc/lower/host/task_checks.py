"""Assertions in tasks: a failure ends the task, and is visible to operations that await it.

Upstream's lowering turns an assertion of a task into the error state of its tokens, without the
message. It does not support assertions in a loop or branch, and ignores those in functions that a
task calls. Here, everything in a task that may fail is moved into functions, and after each call
the task asserts that the function came to its end. `aotc.host.assertions` defines what that means.
"""

from __future__ import annotations

from typing import Any

from aotc import llvm_ops, ops
from aotc.mlir import ir
from aotc.module_names import GOES_ON
from aotc.ops import symbol_of

_PART = "aotc_task_part"
TASKS = ("async.execute", "async.func")
# In functions, where they block, these become assertions.
_AWAITS = ("async.await", "async.await_all")


def check_tasks(host: Any) -> None:
    """Changes the host module in place, before its tasks are lowered."""
    failing = _failing_functions(host)
    risks = [
        op
        for op in ops.find(host.operation, "cf.assert", "func.call")
        if _is_in_task(op) and (op.name == "cf.assert" or ops.callee_of(op) in failing)
    ]
    if not risks:
        return
    body = host.operation.regions[0].blocks[0]
    body.append(ir.Operation.parse(f"llvm.func @{GOES_ON}() -> i1"))
    # Loops and branches are moved as a whole, and may contain several risks.
    statements = dict.fromkeys(_statement(risk) for risk in risks)
    for number, statement in enumerate(statements):
        call = statement
        if statement.name != "func.call":
            call = _move_to_function(host, statement, f"{_PART}_{number}")
        _assert_end(call)


def _is_in_task(operation: Any) -> bool:
    return ops.enclosing(operation, *TASKS) is not None


def _failing_functions(host: Any) -> set[str]:
    """The functions that may fail at an assertion in themselves or in a function that they call."""
    functions = {
        symbol_of(op.operation): ops.walk(op.operation)
        for op in host.operation.regions[0].blocks[0].operations
        if op.operation.name == "func.func"
    }
    failing = {
        name
        for name, inside in functions.items()
        if any(op.name in ("cf.assert", *_AWAITS) and not _is_in_task(op) for op in inside)
    }
    callees = {
        name: {ops.callee_of(op) for op in inside if op.name == "func.call"}
        for name, inside in functions.items()
    }
    while more := {name for name, called in callees.items() if called & failing} - failing:
        failing |= more
    return failing


def _statement(operation: Any) -> Any:
    """The outermost operation around the operation in the task's block. If that waits for a task,
    it is the operation itself: the lowering splits a loop in which a task waits, together with its
    assertions."""
    outermost = operation
    for parent in ops.ancestors(operation):
        if parent.name in TASKS:
            break
        outermost = parent
    waits = any(op.name.startswith("async.") for op in ops.walk(outermost))
    return operation if waits else outermost


def _move_to_function(host: Any, statement: Any, name: str) -> Any:
    """Moves an operation to a new function, and returns the call that replaces it."""
    inside = ops.walk(statement)
    own = {result for op in inside for result in op.results}
    own |= {a for op in inside for r in op.regions for b in r.blocks for a in b.arguments}
    used = dict.fromkeys(value for op in inside for value in op.operands if value not in own)
    results = [result.type for result in statement.results]
    with statement.location:
        types = [value.type for value in used]
        with ir.InsertionPoint(ops.body_of_module(host)):
            function = ops.create_function(name, types, results, no_inline=ir.UnitAttr.get())
        block = function.regions[0].blocks.append(*types)
        with ir.InsertionPoint(statement):
            call = ops.call(name, list(used), results)
        for old, new in zip(statement.results, call.results, strict=True):
            old.replace_all_uses_with(new)
        with ir.InsertionPoint(block):
            end = ops.create("func.return", statement.results)
        statement.move_before(end)
        arguments = dict(zip(used, block.arguments, strict=True))
        for op in inside:
            for index, value in enumerate(op.operands):
                if value in arguments:
                    op.operands[index] = arguments[value]
    return call


def _assert_end(call: Any) -> None:
    following = list(call.block.operations)
    index = next(i for i, op in enumerate(following) if op.operation == call)
    with call.location, ir.InsertionPoint(following[index + 1]):
        goes_on = llvm_ops.call_llvm(GOES_ON, [], [ops.integer(1)]).result
        ops.create_assert(goes_on, "a function that a task called failed")
