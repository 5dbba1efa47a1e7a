"""Checks `gpu.launch_func` against the kernel that it names.

MLIR's verifier only checks launches directly in a function. Others, such as those in a loop, could
pass operands of other types, or fewer than the kernel reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotc import ops
from aotc.analysis.gpu_modules import launched_kernel
from aotc.input.source import Problem
from aotc.mlir import ir
from aotc.symbols import is_kernel, symbols_of

# The operand group of a launch with the kernel's operands.
_KERNEL_OPERANDS = 11
# The names of the gpu.module and the kernel.
_NAMES = 2


def launch_problems(module: Any) -> Iterator[Problem]:
    """Yields problems of launches: their symbol is not a kernel, or their operands do not match
    it."""
    for launch in ops.find(module.operation, "gpu.launch_func"):
        problem = _problem_of(launch)
        if problem is not None:
            yield launch.location, problem


def _problem_of(launch: Any) -> str | None:
    names = launched_kernel(launch)
    if len(names) != _NAMES:
        return "A gpu.launch_func names its kernel as @MODULE::@KERNEL."
    container_name, name = names
    top = ops.enclosing(launch, "builtin.module")
    container = symbols_of(top).get(container_name) if top is not None else None
    if container is None:
        return f"This gpu.launch_func names the gpu.module '{container_name}', which is not there."
    if container.name != "gpu.module":
        return None
    symbols = symbols_of(container)
    kernel = symbols.get(name)
    if kernel is None:
        kernels = [one for one, function in symbols.items() if is_kernel(function)]
        has = f" It has: {', '.join(kernels)}." if kernels else ""
        return f"The gpu.module '{container_name}' has no kernel '{name}'.{has}"
    # A kernel in the LLVM dialect has other types than the launch, which is lowered later.
    if kernel.name != "gpu.func":
        return None
    if not is_kernel(kernel):
        return f"'{name}' is no kernel: its gpu.func has no 'kernel' behind the arguments."
    wanted = list(ir.FunctionType(kernel.attributes["function_type"].value).inputs)
    given = [operand.type for operand in ops.operand_groups(launch)[_KERNEL_OPERANDS]]
    if len(wanted) != len(given):
        return f"The kernel '{name}' takes {len(wanted)} arguments; this launch gives {len(given)}."
    for number, (one, other) in enumerate(zip(wanted, given, strict=True)):
        if one != other:
            return f"Argument {number} of the kernel '{name}' is {one}; this launch gives {other}."
    return None
