"""Assigns one stream to each function, with waits only where its host code needs them.

A launch, copy, fill or free without tokens is synchronous. In a function with the attribute
`aotc.one_stream` it is not: all of them are enqueued in one stream in program order. A call of
`@aotc_wait` waits for the stream, and so does the function's end. `aotc.host.streams` implements
both.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.attributes import ONE_STREAM
from aotc.mlir import ir
from aotc.module_names import WAIT
from aotc.ops import symbol_of

_SYNCHRONOUS = ("gpu.memcpy", "gpu.memset", "gpu.dealloc")
_ENQUEUED = ("gpu.launch_func", "gpu.memcpy", "gpu.memset")


def has_structured_flow(function: Any) -> bool:
    """Whether the function has neither branches between blocks nor explicit async tokens."""
    inside = ops.walk(function)
    return all(len(region.blocks) <= 1 for op in inside for region in op.regions) and not any(
        _has_stream_of_its_own(op) for op in inside
    )


def _has_stream_of_its_own(operation: Any) -> bool:
    is_async = any("async.token" in str(result.type) for result in operation.results)
    if operation.name == "gpu.launch_func":
        is_async = is_async or len(ops.operand_groups(operation)[12]) > 0
    return is_async or operation.name == "gpu.wait" or operation.name.startswith("async.")


def mark_one_stream(function: Any) -> None:
    """Marks a function whose device work is enqueued in one stream."""
    function.attributes[ONE_STREAM] = ir.UnitAttr.get()


def declare_wait(module: Any) -> None:
    """Declares `@aotc_wait` if functions call it and the input did not declare it."""
    declared = [symbol_of(op) for op in ops.find(module.operation, "func.func")]
    called = [ops.callee_of(call) for call in ops.find(module.operation, "func.call")]
    if WAIT not in called or WAIT in declared:
        return
    with ir.InsertionPoint(ops.body_of_module(module)), ir.Location.unknown():
        ops.create_function(WAIT, [], [])


def create_wait() -> None:
    """Waits for the function's stream, at the insertion point."""
    ops.call(WAIT)


def make_asynchronous(operation: Any) -> None:
    """Rewrites a gpu operation to the form that `gpu-to-llvm` lowers: with tokens, and a wait after
    it."""
    token = ir.Type.parse("!gpu.async.token")
    attributes = ops.attributes_of(operation)
    if "operandSegmentSizes" in attributes:
        sizes = list(ir.DenseI32ArrayAttr(attributes["operandSegmentSizes"]))
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, *sizes[1:]])
    with operation.location, ir.InsertionPoint(operation):
        start = ops.create("gpu.wait", results=[token])
        types = [*(result.type for result in operation.results), token]
        operands = [start.result, *operation.operands]
        asynchronous = ops.create(operation.name, operands, types, attributes)
        ops.create("gpu.wait", [asynchronous.results[-1]])
    ops.replace(operation, asynchronous.results)


def make_gpu_operations_asynchronous(module: Any) -> None:
    """Rewrites operations that `gpu-to-llvm` only lowers in asynchronous form."""
    for operation in ops.find(module.operation, *_SYNCHRONOUS):
        if len(operation.results) == 0 and ops.enclosing(operation, "gpu.module") is None:
            make_asynchronous(operation)


def is_enqueued(operation: Any) -> bool:
    """Whether the device executes the operation asynchronously."""
    return operation.name in _ENQUEUED
