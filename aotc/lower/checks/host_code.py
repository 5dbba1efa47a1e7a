"""Refuses operations for the threads of a kernel in host code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotc import ops
from aotc.analysis.functions import CALLS, Functions
from aotc.errors import InputError
from aotc.input.entries import ENTRY_ATTRIBUTE, PROGRAM_MAIN
from aotc.input.source import Source
from aotc.mlir import ir
from aotc.ops import symbol_of

_OF_THREADS = {
    *("gpu.thread_id", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "gpu.global_id"),
    *("gpu.lane_id", "gpu.subgroup_id", "gpu.subgroup_size", "gpu.num_subgroups"),
    *("gpu.cluster_id", "gpu.cluster_dim", "gpu.cluster_block_id", "gpu.cluster_dim_blocks"),
    *("gpu.barrier", "gpu.initialize_named_barrier", "gpu.dynamic_shared_memory", "gpu.printf"),
    *("gpu.shuffle", "gpu.rotate", "gpu.ballot", "gpu.all_reduce", "gpu.subgroup_reduce"),
    *("gpu.subgroup_broadcast", "gpu.warp_execute_on_lane_0"),
}
_DIALECTS_OF_THREADS = ("gpu.subgroup_mma_", "nvgpu.", "nvvm.")
_OF_THE_HOST = ("nvgpu.tma.create.descriptor",)
_BUFFERS = ("memref.alloc", "memref.alloca")
_OF_BLOCKS = ("#gpu.address_space<workgroup>", "3 : i64", "3")
# The bodies of these operations may become kernels.
_PARALLEL_BODIES = ("affine.parallel", "gpu.launch", "scf.forall", "scf.parallel")


def check_host_code(source: Source, *, is_outlined: bool) -> None:
    """Raises InputError for a thread operation in code that the host executes: in an entry, in
    `main`, or in functions that they call.

    Before kernels are outlined (`is_outlined` is false), code that may become a kernel is skipped.
    """
    bodies = () if is_outlined else _PARALLEL_BODIES
    for function in _of_the_host(source.module, bodies):
        for operation in ops.walk(function):
            if not is_outlined and operation.name in _BUFFERS:
                _check_memory(source, operation)
            if not _is_of_threads(operation.name) or _is_inside(operation, bodies):
                continue
            place = source.place(operation.location)
            where = f"{place}: " if place else ""
            raise InputError(
                f"{where}{operation.name} is for the threads of a kernel; here it is in host code, "
                f"@{symbol_of(function)}.",
                hint="Put it into a gpu.launch or a gpu.func.",
            )


def _check_memory(source: Source, buffer: Any) -> None:
    """Raises InputError for a buffer in the memory of a block, if there is no block: of the loops
    in host code, aotc decides which a block executes."""
    space = ir.MemRefType(buffer.results[0].type).memory_space
    if str(space) not in _OF_BLOCKS or ops.enclosing(buffer, "gpu.launch") is not None:
        return
    place = source.place(buffer.location)
    where = f"{place}: " if place else ""
    raise InputError(
        f"{where}{buffer.name} of {buffer.results[0].type}: a block's memory is for kernels; here "
        "it is in host code.",
        hint="Leave the memory space out: aotc puts buffers of tiles into shared memory. Or write "
        "a gpu.launch with workgroup buffers.",
    )


def _is_of_threads(name: str) -> bool:
    if name in _OF_THE_HOST:
        return False
    return name in _OF_THREADS or name.startswith(_DIALECTS_OF_THREADS)


def _of_the_host(module: Any, bodies: tuple[str, ...]) -> Iterator[Any]:
    """Yields the functions that the host executes, each once: entries, `main`, and functions that
    they call outside of `bodies`."""
    functions = Functions(module)
    pending = [
        function
        for function in ops.find(module.operation, "func.func")
        if ENTRY_ATTRIBUTE in function.attributes or symbol_of(function) == PROGRAM_MAIN
    ]
    seen = {symbol_of(function) for function in pending}
    while pending:
        yield (function := pending.pop(0))
        for call in ops.find(function, *CALLS):
            called = functions.get(ops.callee_of(call))
            if called is None or symbol_of(called) in seen or _is_inside(call, bodies):
                continue
            seen.add(symbol_of(called))
            pending.append(called)


def is_in_kernel(operation: Any) -> bool:
    """Whether the operation is in a kernel, or in code that may become one."""
    outside = [parent.name for parent in ops.ancestors(operation)]
    return any(name in (*_PARALLEL_BODIES, "gpu.module") for name in outside)


def _is_inside(operation: Any, bodies: tuple[str, ...]) -> bool:
    """Whether `operation` is nested in one of `bodies` or in a linalg operation."""
    return bool(bodies) and any(
        parent.name in bodies or parent.name.startswith("linalg.")
        for parent in ops.ancestors(operation)
    )
