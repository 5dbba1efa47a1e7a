"""TMA descriptors (`!nvgpu.tensormap.descriptor`) → pointers, outside of nvgpu's operations.

Upstream converts nvgpu before it outlines kernels, so that launches pass pointers. aotc keeps nvgpu
in kernels until the host code and the device code are lowered (the CPU device needs it), and
convert-nvgpu-to-nvvm does not convert the type in launches, functions and `arith.select`. So every
value of the type becomes a pointer, with casts around the operations of nvgpu, which fold with the
casts of that conversion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.analysis.types import is_tensor_map
from aotc.mlir import ir

_FUNCTIONS = ("func.func", "gpu.func", "llvm.func")
_CAST = "builtin.unrealized_conversion_cast"


def lower_tensor_maps(root: Any) -> None:
    """Rewrites the descriptors under `root`, in place."""
    pointer = ir.Type.parse("!llvm.ptr")
    operations = ops.walk(root)
    if not _has_tensor_maps(operations):
        return
    for operation in operations:
        if operation.name.startswith("nvgpu."):
            _cast_operands(operation, pointer)
    for operation in operations:
        if not operation.name.startswith("nvgpu."):
            _retype(operation, pointer)


def _has_tensor_maps(operations: Sequence[Any]) -> bool:
    """Whether there is a descriptor. It can only be a function's argument, or the result of an
    operation of nvgpu."""
    types: set[Any] = set()
    for operation in operations:
        name = operation.name
        if name.startswith("nvgpu."):
            types.update(result.type for result in operation.results)
        elif name in _FUNCTIONS:
            types.add(ir.TypeAttr(operation.attributes["function_type"]).value)
    return any("!nvgpu.tensormap.descriptor<" in str(type_) for type_ in types)


def _cast_operands(operation: Any, pointer: Any) -> None:
    """Inserts casts around an operation that takes or makes descriptors."""
    for i, operand in enumerate(operation.operands):
        if is_tensor_map(operand.type):
            with operation.location, ir.InsertionPoint(operation):
                as_pointer = ops.unary(_CAST, operand, pointer)
                operation.operands[i] = ops.unary(_CAST, as_pointer, operand.type)
    for result in operation.results:
        if is_tensor_map(result.type):
            with operation.location, ir.InsertionPoint.after(operation):
                cast = ops.create(_CAST, [result], [pointer])
            result.replace_all_uses_except(cast.result, cast)


def _retype(operation: Any, pointer: Any) -> None:
    blocks = [block for region in operation.regions for block in region.blocks]
    for value in [*operation.results, *(a for block in blocks for a in block.arguments)]:
        if is_tensor_map(value.type):
            value.set_type(pointer)
    if "function_type" not in operation.attributes:
        return
    type_ = ir.TypeAttr(operation.attributes["function_type"]).value
    if isinstance(type_, ir.FunctionType):
        inputs, results = (
            [pointer if is_tensor_map(t) else t for t in types]
            for types in (type_.inputs, type_.results)
        )
        ops.set_function_type(operation, inputs, results)
