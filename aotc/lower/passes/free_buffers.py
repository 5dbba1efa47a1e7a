"""`aotc-free-buffers`: upstream buffer deallocation for modules with asynchronous tasks."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

_HIDDEN = "aotc_hidden_"


class FreeBuffers(OwnPass, frozen=True):
    """Upstream deallocation refuses operations with unknown memory effects, such as those that wait
    for a task, but accepts calls. So these operations are replaced by calls while it runs."""

    name = "aotc-free-buffers"
    needs = ("aotc-mark-writable-tensors",)
    reason: str = "buffers are freed after their last use; waiting for a task frees none"

    def run(self, lowering: Lowering) -> None:
        hidden: list[_Hidden] = []
        with lowering.module.context:
            for operation in ops.walk(lowering.module.operation):
                if operation.name.startswith("async.") and _has_no_buffers(operation):
                    hidden.append(_Hidden(operation, f"{_HIDDEN}{len(hidden)}", lowering.module))
        lowering.run_upstream("buffer-deallocation-pipeline")
        with lowering.module.context:
            for one in hidden:
                one.restore(lowering.module)


def _has_no_buffers(operation: Any) -> bool:
    values = [*operation.operands, *operation.results]
    is_plain = len(operation.regions) == 0 and operation.name != "async.yield"
    return is_plain and not any("memref" in str(value.type) for value in values)


class _Hidden:
    """A call that stands for an operation until `restore`."""

    def __init__(self, operation: Any, name: str, module: Any) -> None:
        self._operation, self._attributes = operation.name, ops.attributes_of(operation)
        self._callee = name
        inputs, results = (
            [one.type for one in values] for values in (operation.operands, operation.results)
        )
        with operation.location, ir.InsertionPoint.at_block_begin(ops.body_of_module(module)):
            ops.create_function(name, inputs, results)
        _replace(operation, "func.call", {"callee": ir.FlatSymbolRefAttr.get(name)})

    def restore(self, module: Any) -> None:
        for call in ops.find(module.operation, "func.call"):
            if ops.callee_of(call) == self._callee:
                _replace(call, self._operation, self._attributes)
        for function in ops.find(module.operation, "func.func"):
            if ops.symbol_of(function) == self._callee:
                ops.erase(function)


def _replace(operation: Any, name: str, attributes: dict[str, Any]) -> None:
    with operation.location, ir.InsertionPoint(operation):
        results = [one.type for one in operation.results]
        made = ops.create(name, list(operation.operands), results, attributes)
    ops.replace(operation, made.results)
