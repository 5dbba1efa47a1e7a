"""Utilities that the dispatch of all kernels shares: the operations that may become launches, and
the attributes that mark a launch with its target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.analysis.gpu_modules import module_for, runs_on
from aotc.analysis.launch_limits import excesses
from aotc.attributes import CAPABILITIES, TARGET_ATTRIBUTE
from aotc.errors import InternalError
from aotc.input.entries import functions_of
from aotc.kernels.family import ANY_GPU, CPU, EVERYWHERE
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.request import BuildRequest, Chip

# The code inside these operations is already mapped to threads, so no kernel is launched in it.
PARALLEL = ("scf.parallel", "scf.forall", "affine.parallel", "gpu.launch", "gpu.func")


def generics_on_host(module: Any) -> list[Any]:
    """The `linalg.generic` operations that kernel launches may replace."""
    inside = functions_called_in_parallel(module)
    return [
        generic
        for function in functions_of(module)
        if symbol_of(function) not in inside
        for generic in ops.find(function, "linalg.generic")
        if ops.enclosing(generic, *PARALLEL) is None
    ]


def is_for_cpu(operation: Any) -> bool:
    """Whether the operation is in a function that is compiled for the CPU device alone."""
    function = ops.enclosing(operation, "func.func")
    return function is not None and runs_on(function) == CPU


def functions_called_in_parallel(module: Any) -> set[str]:
    """The names of the functions that parallel code calls, directly or transitively. They cannot
    launch kernels."""
    functions = {symbol_of(function): function for function in functions_of(module)}
    found: set[str] = set()
    pending = [
        ops.callee_of(call)
        for call in ops.find(module.operation, "func.call")
        if ops.enclosing(call, *PARALLEL) is not None
    ]
    while pending:
        name = pending.pop()
        if name in functions and name not in found:
            found.add(name)
            pending += [ops.callee_of(call) for call in ops.find(functions[name], "func.call")]
    return found


def name_modules(choice: Any, capabilities: Sequence[int], dispatch: str) -> None:
    """Sets the attribute `module` of each launch in `choice` to its GPU module, which kernel
    outlining reads. The dispatch has set the target on a region around the launch. `dispatch`: see
    `module_for`.

    Raises InternalError if a launch exceeds a limit of one of the GPUs that it is for.
    `capabilities` are the compute capabilities of the build.
    """
    noted: dict[Any, None] = {}
    for launch in ops.find(choice, "gpu.launch"):
        around = next(a for a in ops.ancestors(launch) if TARGET_ATTRIBUTE in a.attributes)
        noted[around] = None
        target = ir.StringAttr(around.attributes[TARGET_ATTRIBUTE]).value
        launch.attributes["module"] = ir.FlatSymbolRefAttr.get(module_for(target, dispatch))
        for excess in excesses(launch, *_launched_on(around, target, capabilities)):
            raise InternalError(f"A kernel that was chosen at {launch.location} has {excess}.")
    for around in noted:
        for name in (TARGET_ATTRIBUTE, CAPABILITIES):
            if name in around.attributes:
                del around.attributes[name]


def _launched_on(around: Any, target: str, capabilities: Sequence[int]) -> Sequence[int]:
    if target == CPU:
        return ()
    if target not in (ANY_GPU, EVERYWHERE):
        return [Chip(target).capability]
    if CAPABILITIES in around.attributes:
        return list(ir.DenseI32ArrayAttr(around.attributes[CAPABILITIES]))
    return capabilities


def chips_of(request: BuildRequest) -> list[Chip]:
    return [*request.cubin_chips, *([request.ptx] if request.ptx else [])]
