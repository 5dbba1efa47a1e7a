"""gpu.modules → `CpuKernels`: for each kernel a host function, or why it has none."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from aotc.analysis.gpu_modules import runs_on
from aotc.host.kernels import CpuKernel, CpuKernels, SyncPoint, SyncScope
from aotc.host.merge_kernels import move_symbols
from aotc.input.source import find_place
from aotc.kernels.family import CPU
from aotc.mlir import ir
from aotc.ops import content, symbol_of
from aotc.rewrites.bfloat import add_bfloat_functions
from aotc.rewrites.run import UNWATCHED, PassWatch
from aotc.symbols import is_kernel, reach, symbols_of
from aotc.targets.cpu.blocks.flow import Sync
from aotc.targets.cpu.extract import PREFIX, KernelName, Names, extract_threads, plan_names
from aotc.targets.cpu.host_function import HostFunction, add_host_functions
from aotc.targets.cpu.lowering import LoweringError, lower_to_llvm, prefix_helpers
from aotc.targets.cpu.support import find_obstacle

_OTHERS = "the CPU has another for the same"
_POINTS = {
    SyncScope.BLOCK: "gpu.barrier",
    SyncScope.WARP: "the exchange of a warp",
    SyncScope.NAMED: "the named barrier",
}


def build_cpu_kernels(
    module: Any, name: str = "-", *, debug: bool = False, watch: PassWatch = UNWATCHED
) -> CpuKernels:
    """Makes host functions of all kernels in `module`, which stays as it is.

    `name` is what places call the input where it has no file name. With `debug`, debuggers
    find lines of the input and the ids.
    """
    with module.context, ir.Location.unknown():
        gpu_modules = [op for op in content(module.operation) if op.name == "gpu.module"]
        why_not = _obstacles(gpu_modules, name)
        names = plan_names(module, gpu_modules)
        result = ir.Module.create()
        able = [kernel for kernel, reason in why_not.items() if reason is None]
        built = _build(gpu_modules, able, names, name, result, debug=debug, watch=watch)
        add_bfloat_functions(result)
    kernels = []
    for kernel, reason in why_not.items():
        found = built.get(kernel, reason)
        kernels.append(
            CpuKernel(*kernel, None, found)
            if found is None or isinstance(found, str)
            else _describe_function(kernel, names.blocks[kernel], found, name)
        )
    return CpuKernels(result, tuple(kernels))


def _describe_function(
    kernel: KernelName, symbol: str, function: HostFunction, name: str
) -> CpuKernel:
    return CpuKernel(
        *kernel,
        symbol=None if function.is_step else symbol,
        why_not=None,
        step=symbol if function.is_step else None,
        shared_bytes=function.shared_bytes,
        thread_bytes=function.thread_bytes,
        block_dim=function.block_dim,
        sync_points=tuple(SyncPoint(sync.scope, _place_of(sync, name)) for sync in function.syncs),
    )


def _place_of(sync: Sync, name: str) -> str:
    what = _POINTS[sync.scope]
    place = find_place(str(sync.location), name)
    return what if place is None else f"{what} at {place}"


def _obstacles(gpu_modules: list[Any], name: str) -> dict[KernelName, str | None]:
    """Every kernel, in order, with what keeps it from running on the CPU."""
    obstacles: dict[KernelName, str | None] = {}
    for gpu_module in gpu_modules:
        symbols = symbols_of(gpu_module)
        for kernel_name, operation in symbols.items():
            if is_kernel(operation):
                targets = {runs_on(gpu_module), runs_on(operation)}
                is_for_it = targets <= {None, CPU}
                obstacle = find_obstacle(reach(operation, symbols), name) if is_for_it else _OTHERS
                obstacles[symbol_of(gpu_module), kernel_name] = obstacle
    return obstacles


def _build(
    gpu_modules: list[Any],
    kernels: list[KernelName],
    names: Names,
    name: str,
    result: Any,
    *,
    debug: bool,
    watch: PassWatch,
) -> dict[KernelName, HostFunction | str]:
    """Adds the kernels' functions to `result`; tells why not, for those that it cannot lower."""
    if not kernels:
        return {}
    try:
        extracted = extract_threads(gpu_modules, set(kernels), names, name)
        lower_to_llvm(extracted.module, watch)
        functions = add_host_functions(
            extracted.module,
            [(names.blocks[kernel], extracted.threads[kernel]) for kernel in kernels],
            debug=debug,
            watch=watch,
        )
    except LoweringError as error:
        if len(kernels) == 1:
            return {kernels[0]: _describe(error, name)}
        # Some of them cannot be lowered: one by one, the others still can.
        found: dict[KernelName, HostFunction | str] = {}
        for kernel in kernels:
            found |= _build(gpu_modules, [kernel], names, name, result, debug=debug, watch=watch)
        return found
    prefix_helpers(extracted.module, PREFIX)
    move_symbols(extracted.module, result)
    return {
        kernel: replace(function, shared_bytes=extracted.shared_bytes[kernel])
        for kernel, function in zip(kernels, functions, strict=True)
    }


def _describe(error: LoweringError, name: str) -> str:
    place = find_place(str(error.location), name)
    at = "" if place is None else f" at {place}"
    return f"{error.message}{at}"
