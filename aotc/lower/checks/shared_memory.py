"""Checks the shared memory of kernels against the limits of chips."""

from __future__ import annotations

from typing import Any

from aotc.analysis.extents import LaunchSizes
from aotc.analysis.gpu_modules import launched_kernel
from aotc.analysis.shared_memory import static_bytes
from aotc.chips import STATIC_SHARED_BYTES
from aotc.input.source import Source
from aotc.lower.checks.dynamic_shared import dynamic_need
from aotc.lower.checks.launches import LAUNCHES
from aotc.lower.checks.operations import Operations
from aotc.lower.checks.reach import runs_in_every_call
from aotc.ops import symbol_of
from aotc.request import BuildRequest
from aotc.target import TARGETS
from aotc.warnings import BuildWarning


def check_shared_memory(
    source: Source, operations: Operations, request: BuildRequest
) -> list[BuildWarning]:
    """Warnings for kernels with more static shared memory than ptxas supports, and for launches
    with more dynamic memory than the chips have, or less than the kernel uses."""
    kernels = operations.kernels()
    found = []
    for kernel in [*kernels.values(), *operations.named("gpu.launch")]:
        static = static_bytes(kernel)
        if static > STATIC_SHARED_BYTES:
            what = f"'{symbol_of(kernel)}'" if kernel.name != "gpu.launch" else "the kernel"
            found.append(
                BuildWarning.at(
                    source,
                    "shared-memory",
                    kernel.location,
                    f"{what} has {static} bytes of static shared memory: GPUs take "
                    f"{STATIC_SHARED_BYTES} (more as dynamic_shared_memory_size)",
                )
            )
    for launch in operations.named(*LAUNCHES):
        kernel = launch
        if launch.name == "gpu.launch_func":
            kernel = kernels.get(launched_kernel(launch))
        found += _check_dynamic(source, request, launch, kernel)
    return found


def _check_dynamic(
    source: Source, request: BuildRequest, launch: Any, kernel: Any | None
) -> list[BuildWarning]:
    dynamic = LaunchSizes.of(launch).dynamic_shared_bytes
    if dynamic is None:
        return []
    if dynamic < 0:
        message = f"a launch asks for {dynamic} bytes of dynamic shared memory"
        return [BuildWarning.at(source, "shared-memory", launch.location, message)]
    need = dynamic_need(kernel) if kernel is not None else None
    if need is not None and dynamic < need.bytes:
        what = f"'{symbol_of(kernel)}'" if kernel != launch else "the kernel"
        message = (
            f"{what} uses dynamic shared memory: dynamic_shared_memory_size must be at least "
            f"{need.bytes}, and is {dynamic}"
        )
        is_sure = (need.is_certain or dynamic == 0) and runs_in_every_call(launch)
        return [BuildWarning.at(source, "shared-memory", launch.location, message, is_sure=is_sure)]
    if dynamic == 0:
        return []
    static = static_bytes(kernel) if kernel is not None else 0
    chips = request.cubin_chips
    if request.has_default_chips and kernel is not None:
        chips = tuple(one for target in TARGETS for one in target.gpus_for(kernel, chips))
    lacking = [chip for chip in chips if static + dynamic > chip.limits.block_shared]
    if not lacking:
        return []
    is_left_to_us = request.has_default_chips and len(lacking) < len(chips)
    asked = f"{dynamic} bytes of dynamic" + (f" and {static} of static" if static else "")
    has = ", ".join(f"{chip.name} has {chip.limits.block_shared}" for chip in lacking)
    return [
        BuildWarning.at(
            source,
            "chip-shared-memory" if is_left_to_us else "shared-memory",
            launch.location,
            f"a block is given {asked} shared memory: {has}",
        )
    ]
