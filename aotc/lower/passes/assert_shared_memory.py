"""`aotc-assert-shared-memory`: asserts that each launch has the dynamic shared memory its kernel
uses.

A GPU rounds the size up, and may read and write past it without an error. The CPU device has no
memory there.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.extents import LaunchSizes
from aotc.analysis.gpu_modules import gpu_modules, launched_kernel
from aotc.lower.checks.dynamic_shared import Need, dynamic_need
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir
from aotc.symbols import symbols_of

_SGE = 5  # arith.cmpi's number
# The operand group of a launch that holds the dynamic shared memory size.
_SIZE_GROUP = 10


class AssertSharedMemory(OwnPass, frozen=True):
    name = "aotc-assert-shared-memory"
    reason: str = "a launch with less dynamic shared memory than its kernel uses is a failure"

    def run(self, lowering: Lowering) -> None:
        module = lowering.module
        with module.context:
            kernels = {
                (ops.symbol_of(gpu_module), name): function
                for gpu_module in gpu_modules(module)
                for name, function in symbols_of(gpu_module).items()
                if function.name in ("gpu.func", "llvm.func")
            }
            needs = {name: dynamic_need(kernel) for name, kernel in kernels.items()}
            for launch in ops.find(module.operation, "gpu.launch"):
                _assert_size(launch, "the kernel", dynamic_need(launch))
            for launch in ops.find(module.operation, "gpu.launch_func"):
                name = launched_kernel(launch)
                _assert_size(launch, f"'{name[1]}'", needs.get(name))


def _assert_size(launch: Any, kernel: str, need: Need | None) -> None:
    known = LaunchSizes.of(launch).dynamic_shared_bytes
    if need is None or not need.is_certain or (known is not None and known >= need.bytes):
        return
    group = ops.operand_groups(launch)[_SIZE_GROUP]
    with launch.location, ir.InsertionPoint(launch):
        if group:
            is_enough = ops.compare(_SGE, group[0], ops.constant(group[0].type, need.bytes))
        else:
            is_enough = ops.constant(ops.integer(1), 0)
        bound = f"dynamic_shared_memory_size is at least {need.bytes}"
        ops.create_assert(is_enough, f"{kernel} uses dynamic shared memory: {bound}")
