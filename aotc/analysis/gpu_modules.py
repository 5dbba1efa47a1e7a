"""gpu.modules: which there are, their kernels, and what those run on."""

from __future__ import annotations

import re
from typing import Any

from aotc import ops
from aotc.mlir import ir

# Of a gpu.module that aotc wrote, or of a function: what its kernels are launched on, a chip, any
# GPU, or the CPU device. What is launched anywhere has no such attribute.
RUNS_ON = "aotc.runs_on"
# Begins the name of the gpu.module that a gpu.launch is for: see `module_for`.
MODULE_PREFIX = "aotc_runs_on_"


def module_for(target: str, dispatch: str) -> str:
    """The gpu.module that a `gpu.launch` names whose kernel is launched on `target` alone: a chip,
    ANY_GPU or CPU; or EVERYWHERE. `dispatch` identifies the operation that the kernels of the
    module are for: letters, `_` and a number."""
    return f"{MODULE_PREFIX}{target}_{dispatch}"


def target_and_dispatch(name: str) -> tuple[str, str]:
    """The arguments of `module_for`, of the name of an outlined gpu.module; two empty strings for
    the name of another one. (The outlining may have appended a number.)"""
    found = re.match(r"([a-z]+(?:_\d+a?)?)_([a-z]+_\d+)", name.removeprefix(MODULE_PREFIX))
    if found is None or not name.startswith(MODULE_PREFIX):
        return "", ""
    return found[1], found[2]


def runs_on(operation: Any) -> str | None:
    """What the kernels of a gpu.module or a function are launched on, if it is not everything."""
    attribute = operation.attributes
    return ir.StringAttr(attribute[RUNS_ON]).value if RUNS_ON in attribute else None


def gpu_modules(module: Any) -> list[Any]:
    """The gpu.modules at the top level of a module: an `ir.Module`, or its operation."""
    top = ops.body_of_module(module).operations
    return [op.operation for op in top if op.operation.name == "gpu.module"]


def lowered_kernels(gpu_module: Any) -> list[Any]:
    """The kernels of a gpu.module that are in the LLVM dialect already."""
    content = (op.operation for op in gpu_module.regions[0].blocks[0].operations)
    return [
        op
        for op in content
        if op.name == "llvm.func"
        and ("gpu.kernel" in op.attributes or "nvvm.kernel" in op.attributes)
    ]


def launched_kernel(launch: Any) -> tuple[str, str]:
    """(gpu.module, kernel) that a gpu.launch_func names."""
    return tuple(ir.SymbolRefAttr(launch.attributes["kernel"]).value)
