"""Host memory that is passed to kernels and that nothing will place in device memory.

This is for `--memory explicit`, on the outlined module.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.access import Flow
from aotc.analysis.functions import Functions
from aotc.input.source import Source
from aotc.warnings import BuildWarning

_HOST_MEMORY = ("memref.alloc", "memref.alloca", "memref.get_global")


def check_host_pointers(source: Source) -> list[BuildWarning]:
    """Warnings for launches with a host buffer that is not registered."""
    functions = Functions(source.module)
    found = []
    for buffer in ops.find(source.module.operation, *_HOST_MEMORY):
        if ops.enclosing(buffer, "gpu.module", "gpu.launch") is not None:
            continue
        if buffer.results[0].type.memory_space is not None:
            continue  # the author chose the memory space
        flow = Flow.of(buffer.results[0], functions)
        if flow.is_registered or any(_may_register(alias, functions) for alias in flow.aliases):
            continue
        for launch, argument in flow.launches:
            found.append(_describe(source, buffer, launch, argument))
    return found


def _may_register(value: Any, functions: Functions) -> bool:
    """Whether external code has access to the buffer, such as `mgpuMemHostRegister...`, or a
    pointer is taken."""
    for use in value.uses:
        user = use.owner.operation
        if user.name == "func.call" and functions.get(ops.callee_of(user)) is None:
            return True
        if user.name.startswith(("llvm.", "memref.extract_aligned", "builtin.unrealized")):
            return True
    return False


def _describe(source: Source, buffer: Any, launch: Any, argument: int) -> BuildWarning:
    place = source.place(buffer.location)
    where = f" of {place.line}:{place.column}" if place else ""
    return BuildWarning.at(
        source,
        "host-pointer",
        launch.location,
        f"kernel argument {argument} is host memory, the {buffer.name}{where}, which a GPU cannot "
        "reach: use gpu.alloc or gpu.host_register, or --memory auto",
    )
