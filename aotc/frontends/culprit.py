"""Finds the operation of an imported module on which a torch-mlir pipeline crashes or does not
terminate.

Each operation is put into a module of its own, with the constants that it uses; its other operands
become arguments. The first operation on which the passes crash or do not terminate is the culprit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from aotc.input.place import Place
from aotc.input.source import find_place
from aotc.processes.fork_server import FORK_SERVER, Limits, TaskError, task_progress

_LIMITS = Limits(memory=4 << 30, seconds=3)
# Larger constants and all resources are elided in the text. MLIR prints a resource to learn its
# length, unless the limit is 0.
_LARGEST_CONSTANT = 64
# Operations that are not nodes of a program, but are copied together with the nodes that use them.
CONSTANTS = (
    "torch.constant.",
    "torch.vtensor.literal",
    "torch.prim.ListConstruct",
    "torch.prim.TupleConstruct",
    "torch.aten.Float.Scalar",
)


class Culprit(Struct, frozen=True):
    """The name of the operation in its framework, and its place in the program, if known."""

    operation: str
    place: Place | None


def serialized_module(module: Any, pipeline: str) -> bytes:
    """The input of `find_culprit` for a module. A task records it before it runs the pipeline."""
    text = module.operation.get_asm(
        enable_debug_info=True, large_elements_limit=_LARGEST_CONSTANT, large_resource_limit=0
    )
    return json.dumps({"pipeline": pipeline, "module": text}).encode()


def find_culprit(error: TaskError) -> Culprit | None:
    """The operation on which the failed task's pipeline crashes or does not terminate. None if the
    task recorded no module, or if no single operation makes it fail."""
    if not error.left.startswith(b'{"pipeline"'):
        return None
    try:
        FORK_SERVER.call(f"{__name__}:run_each_operation", error.left, limits=_LIMITS)
    except TaskError as again:
        if not again.step:
            return None
        operation, location = json.loads(again.step)
        return Culprit(_describe(operation, location), find_place(location, ""))
    return None


def _describe(operation: str, location: str) -> str:
    """`'torch.aten.sort'`. For ONNX, also the name of the node, which is in its location."""
    is_name = location.startswith('loc("') and location.endswith('")') and location != 'loc("")'
    return f"'{operation}'" + (f" (node '{location[5:-2]}')" if is_name else "")


def run_each_operation(given: memoryview) -> bytes:
    """The task of the fork server: runs the pipeline on each operation, and reports each before it
    runs."""
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.passmanager import PassManager

    request = json.loads(bytes(given))
    progress = task_progress()
    assert progress is not None
    context = ir.Context()
    context.emit_error_diagnostics = False
    torch_dialect.register_dialect(context)
    seen = set()
    with context, ir.Location.unknown():
        manager = PassManager.parse(f"builtin.module({request['pipeline']})")
        for function, operation in _operations(ir.Module.parse(request["module"])):
            key = operation.get_asm(use_local_scope=True).partition("=")[2]
            if key in seen:
                continue
            seen.add(key)
            progress.tell(json.dumps([_name(operation), str(operation.location)]))
            try:
                manager.run(_isolated(ir, function, operation).operation)
            except (ir.MLIRError, ValueError):
                continue  # the passes refuse it, or it is not a valid module
    return b""


def refused_operation(module: Any, one_pass: str) -> tuple[str, str] | None:
    """The name and location of the first operation that a pass of torch-mlir fails on by itself."""
    from torch_mlir import ir
    from torch_mlir.passmanager import PassManager

    with module.context, ir.Location.unknown():
        manager = PassManager.parse(f"builtin.module({one_pass})")
        for function, operation in _operations(module):
            if not operation.name.startswith("torch."):
                continue  # an earlier pass has lowered it, or inserted a conversion
            try:
                alone = _isolated(ir, function, operation)
            except (ir.MLIRError, ValueError):
                continue  # the operation is no valid module by itself
            try:
                manager.run(alone.operation)
            except ir.MLIRError:
                return operation.name, str(operation.location)
    return None


def _operations(module: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the operations of functions' bodies, each with its function."""
    for function in module.body.operations:
        for region in function.operation.regions:
            for block in region:
                for operation in block.operations:
                    one = operation.operation
                    if one.results and not _is_constant(one):
                        yield function.operation, one


def _name(operation: Any) -> str:
    """The operation's name. For an operator of ONNX, which is a `torch.operator`, its name in
    ONNX."""
    if operation.name == "torch.operator":
        return str(operation.attributes["name"]).strip('"')
    return str(operation.name)


def _is_constant(operation: Any) -> bool:
    return operation.name.startswith(CONSTANTS) or _name(operation) == "onnx.Constant"


def _isolated(ir: Any, function: Any, operation: Any) -> Any:
    """A module with only this operation, in a function with the attributes of the original one."""
    needed = [operation]
    for one in needed:  # the list grows during the iteration
        for operand in one.operands:
            maker = getattr(operand.owner, "operation", None)
            if maker is not None and _is_constant(maker) and maker not in needed:
                needed.append(maker)
    needed.reverse()
    made = {result for one in needed for result in one.results}
    given = [operand for one in needed for operand in one.operands if operand not in made]
    given = list(dict.fromkeys(given))
    module = ir.Module.create()
    type_ = ir.FunctionType.get(
        [value.type for value in given], [result.type for result in operation.results]
    )
    attributes = {
        named: function.attributes[named]
        for named in function.attributes
        if named not in ("function_type", "arg_attrs", "res_attrs")
    }
    attributes["function_type"] = ir.TypeAttr.get(type_)
    with ir.InsertionPoint(module.body):
        copy = ir.Operation.create("func.func", regions=1, attributes=attributes)
    block = copy.regions[0].blocks.append(*(value.type for value in given))
    values = dict(zip(given, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for one in needed:
            clone = one.clone().operation
            for place, operand in enumerate(one.operands):
                clone.operands[place] = values[operand]
            values |= dict(zip(one.results, clone.results, strict=True))
        ir.Operation.create("func.return", operands=list(clone.results))
    return module
