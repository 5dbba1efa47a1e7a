"""Lowers the async dialect in host code to coroutines and calls of the async runtime.

The bodies of async.execute become functions that LLVM splits into coroutines. GPU work in them does
not change, and they wait for it on the thread of their task. A task may yield a token of GPU work
that is still running, as upstream's gpu-async-region creates them. Such a task waits for the work
before it ends.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.lower.host.task_checks import TASKS, check_tasks
from aotc.mlir import ir
from aotc.rewrites.run import PassWatch, run_passes

_TO_CALLS = (
    "async-func-to-async-runtime",
    "async-to-async-runtime",
    "async-runtime-ref-counting",
    "async-runtime-ref-counting-opt",
    "convert-async-to-llvm",
)
# The passes do not support waiting in an scf.for.
_LOOPS = ("func.func(scf-for-to-while)", "async.func(scf-for-to-while)")
ASYNC_PASSES = (*_LOOPS, *_TO_CALLS)
_GPU_TOKEN = "!gpu.async.token"
_VALUE_OF_GPU_TOKEN = f"!async.value<{_GPU_TOKEN}>"


def lower_async(host: Any, *, name: str, lines: tuple[str, ...], watch: PassWatch) -> None:
    """Changes the host module in place; does nothing if there are no tasks."""
    if not has_tasks(host):
        return
    _end_gpu_work(host)
    check_tasks(host)
    passes = ASYNC_PASSES if _waits_in_loop(host) else _TO_CALLS
    run_passes(
        host, passes, name=name, lines=lines, doing="lowering tasks to coroutines", watch=watch
    )


def has_tasks(operation: Any) -> bool:
    """Whether the module has operations of the async dialect."""
    return any(op.name.startswith("async.") for op in ops.walk(operation.operation))


def _waits_in_loop(host: Any) -> bool:
    return any(
        ops.enclosing(op, "scf.for") is not None
        for op in ops.find(host.operation, "async.await", "async.await_all")
        if ops.enclosing(op, *TASKS) is not None
    )


def _end_gpu_work(host: Any) -> None:
    """Makes tasks wait for their GPU work. The GPU tokens that they yield become unused flags, and
    their users get completed tokens."""
    flag, value_of_flag = ir.Type.parse("i1"), ir.Type.parse("!async.value<i1>")
    for op in ops.find(host.operation, "async.execute", "async.yield", "async.await"):
        if op.name == "async.yield":
            _wait_before(op)
        elif op.name == "async.await":
            for result in _with_type(op.results, _GPU_TOKEN):
                _replace_by_nothing(result, _behind(op))
                result.set_type(flag)
        else:
            body = op.regions[0].blocks[0]
            for argument in _with_type(body.arguments, _GPU_TOKEN):
                _replace_by_nothing(argument, ir.InsertionPoint.at_block_begin(body))
                argument.set_type(flag)
            for result in _with_type(op.results, _VALUE_OF_GPU_TOKEN):
                result.set_type(value_of_flag)


def _wait_before(yielding: Any) -> None:
    for index, token in enumerate(yielding.operands):
        if str(token.type) != _GPU_TOKEN:
            continue
        with yielding.location, ir.InsertionPoint(yielding):
            ir.Operation.create("gpu.wait", operands=[token])
            done = ir.IntegerAttr.get(ir.IntegerType.get_signless(1), 1)
            yielding.operands[index] = ops.constant_from(done)


def _replace_by_nothing(token: Any, place: Any) -> None:
    """Replaces a token by one that is complete."""
    with place, ir.Location.unknown():
        token_type = ir.Type.parse(_GPU_TOKEN)
        token.replace_all_uses_with(ir.Operation.create("gpu.wait", results=[token_type]).result)


def _with_type(values: Any, type_: str) -> list[Any]:
    return [value for value in values if str(value.type) == type_]


def _behind(operation: Any) -> Any:
    block = operation.block
    following = list(block.operations)
    index = next(i for i, op in enumerate(following) if op.operation == operation)
    return ir.InsertionPoint(following[index + 1])
