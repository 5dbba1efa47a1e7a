"""TMA descriptors (`!nvgpu.tensormap.descriptor`) cross launches as pointers.

Upstream converts nvgpu before it outlines kernels, so that kernels are given pointers. Here
kernels keep nvgpu until each half is lowered (the CPU device reads it), and neither half's
conversion knows the type at the launch: gpu.func and gpu.launch_func get casts between it and
the pointer that it becomes, which fold with those of convert-nvgpu-to-nvvm.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir

_CAST = "builtin.unrealized_conversion_cast"
_POINTER = "!llvm.ptr"


def is_tensor_map(type_: Any) -> bool:
    return str(type_).startswith("!nvgpu.tensormap.descriptor<")


def take_pointers(root: Any) -> None:
    """Makes the kernels and device functions under `root` take pointers to descriptors."""
    for function in ops.find(root, "gpu.func", "func.func"):
        type_ = ir.TypeAttr(function.attributes["function_type"]).value
        if not any(map(is_tensor_map, type_.inputs)) or ops.is_declaration(function):
            continue
        block = function.regions[0].blocks[0]
        inputs = [_lowered(input_) for input_ in type_.inputs]
        function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(inputs, list(type_.results))
        )
        with function.location, ir.InsertionPoint.at_block_begin(block):
            for argument in block.arguments:
                if is_tensor_map(argument.type):
                    _take_pointer(argument)


def _take_pointer(argument: Any) -> None:
    descriptor_type = argument.type
    argument.set_type(ir.Type.parse(_POINTER))
    cast = ops.create(_CAST, [argument], [descriptor_type])
    argument.replace_all_uses_except(cast.result, cast)


def pass_pointers(root: Any) -> None:
    """Makes the launches and calls under `root` pass pointers to descriptors."""
    for call in ops.find(root, "gpu.launch_func", "func.call"):
        for i, operand in enumerate(call.operands):
            if is_tensor_map(operand.type):
                with call.location, ir.InsertionPoint(call):
                    pointer = ops.unary(_CAST, operand, ir.Type.parse(_POINTER))
                call.operands[i] = pointer


def _lowered(type_: Any) -> Any:
    return ir.Type.parse(_POINTER) if is_tensor_map(type_) else type_
