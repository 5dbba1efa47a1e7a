"""The gpu.modules of a module, their kernels, and the targets that these run on."""

from __future__ import annotations

import re
from typing import Any

from aotc import ops
from aotc.attributes import RUNS_ON
from aotc.mlir import ir

# The prefix of the gpu.module's name in a gpu.launch: see `module_for`.
MODULE_PREFIX = "aotc_runs_on_"


def module_for(target: str, dispatch: str) -> str:
    """The name of the gpu.module in a `gpu.launch` whose kernel is launched on `target` alone.

    `target` is a chip, ANY_GPU, CPU, or EVERYWHERE. `dispatch` identifies the operation that the
    kernels of the module implement; it consists of letters, `_` and a number."""
    return f"{MODULE_PREFIX}{target}_{dispatch}"


def target_and_dispatch(name: str) -> tuple[str, str]:
    """The arguments of `module_for` that gave an outlined gpu.module its name; two empty strings
    if it did not. (The outlining may have appended a number.)"""
    found = re.match(r"([a-z]+(?:_\d+a?)?)_([a-z]+_\d+)", name.removeprefix(MODULE_PREFIX))
    if found is None or not name.startswith(MODULE_PREFIX):
        return "", ""
    return found[1], found[2]


def runs_on(operation: Any) -> str | None:
    """The target that the kernels of a gpu.module or a function are launched on; None if they are
    launched on every target."""
    attribute = operation.attributes
    return ir.StringAttr(attribute[RUNS_ON]).value if RUNS_ON in attribute else None


def gpu_modules(module: Any) -> list[Any]:
    """The gpu.modules at the top level of a module, which is an `ir.Module` or its operation."""
    top = ops.body_of_module(module).operations
    return [op.operation for op in top if op.operation.name == "gpu.module"]


def lowered_kernels(gpu_module: Any) -> list[Any]:
    """The kernels of a gpu.module that are llvm.funcs already."""
    content = (op.operation for op in gpu_module.regions[0].blocks[0].operations)
    return [
        op
        for op in content
        if op.name == "llvm.func"
        and ("gpu.kernel" in op.attributes or "nvvm.kernel" in op.attributes)
    ]


def launched_kernel(launch: Any) -> tuple[str, str]:
    """The names (gpu.module, kernel) of the kernel that a gpu.launch_func launches."""
    return tuple(ir.SymbolRefAttr(launch.attributes["kernel"]).value)
