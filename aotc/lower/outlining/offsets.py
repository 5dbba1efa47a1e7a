"""Makes offsets of arguments dynamic in kernels that only differ in static offsets.

For example, the steps of a recurrent network each read one row of a tensor. The offset of the row
is a part of its type, so each step would have its own kernel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.analysis.gpu_modules import launched_kernel
from aotc.mlir import ir
from aotc.ops import symbol_of

# Accesses, whose meaning does not otherwise depend on the memref's type.
_ACCESSES = (
    "memref.load",
    "memref.store",
    "memref.atomic_rmw",
    "vector.load",
    "vector.store",
    "vector.maskedload",
    "vector.maskedstore",
    "nvgpu.device_async_copy",
)
_OFFSET = re.compile(r", offset: \d+>")
_OPERANDS_GROUP = -2  # the operand group of a gpu.launch_func with the kernel's operands


def unify_offsets(kernels: Sequence[Any], launches: Sequence[Any]) -> None:
    """Makes offsets of arguments dynamic where kernels become equal by that; other kernels stay as
    they are."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for kernel in kernels:
        type_ = str(kernel.attributes["function_type"])
        if "strided" in type_:
            groups.setdefault((_base(kernel), _OFFSET.sub(">", type_)), []).append(kernel)
    for group in groups.values():
        if len({str(kernel.attributes["function_type"]) for kernel in group}) > 1:
            _unify_group(group, launches)


def _base(kernel: Any) -> str:
    """The kernel's name without its number."""
    return re.sub(r"_\d+$", "", symbol_of(kernel))


def _unify_group(group: Sequence[Any], launches: Sequence[Any]) -> None:
    """Unifies kernels whose types only differ in offsets."""
    texts: dict[str, list[Any]] = {}
    for kernel in group:
        text = kernel.get_asm(use_local_scope=True).replace(f"@{symbol_of(kernel)}(", "@(", 1)
        texts.setdefault(_OFFSET.sub(">", text), []).append(kernel)
    for same in texts.values():
        arguments = [list(kernel.regions[0].blocks[0].arguments) for kernel in same]
        numbers = [
            number
            for number, column in enumerate(zip(*arguments, strict=True))
            if len({str(argument.type) for argument in column}) > 1
        ]
        if numbers and all(_is_accessed(one[number]) for one in arguments for number in numbers):
            paths = {(symbol_of(kernel.parent), symbol_of(kernel)) for kernel in same}
            for kernel in same:
                _forget_offsets(kernel, numbers)
            for launch in launches:
                if launched_kernel(launch) in paths:
                    _cast_operands(launch, numbers)


def _is_accessed(argument: Any) -> bool:
    return all(use.owner.operation.name in _ACCESSES for use in argument.uses)


def _without_offset(type_: Any) -> Any:
    strides, _ = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(unknown, strides)
    return ir.MemRefType.get(type_.shape, type_.element_type, layout, type_.memory_space)


def _forget_offsets(kernel: Any, numbers: Sequence[int]) -> None:
    arguments, function = kernel.regions[0].blocks[0].arguments, ops.function_type(kernel)
    with kernel.location:
        for number in numbers:
            arguments[number].set_type(_without_offset(arguments[number].type))
        # The parameters are followed by the workgroup buffers.
        inputs = [arguments[number].type for number in range(len(function.inputs))]
        ops.set_function_type(kernel, inputs, function.results)


def _cast_operands(launch: Any, numbers: Sequence[int]) -> None:
    groups = ops.operand_groups(launch)
    first = sum(map(len, groups[:_OPERANDS_GROUP]))
    with launch.location, ir.InsertionPoint(launch):
        for number in numbers:
            value = launch.operands[first + number]
            cast = ops.unary("memref.cast", value, _without_offset(value.type))
            launch.operands[first + number] = cast
