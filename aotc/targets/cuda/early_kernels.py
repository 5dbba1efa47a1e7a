"""Kernels that may begin while the kernel before them on their stream still runs.

A launch can allow that (programmatic dependent launch, from sm_90 on): then a kernel's blocks come
to multiprocessors that the kernel before has left, or that it says it can spare
(`nvvm.griddepcontrol launch_dependents`). `nvvm.griddepcontrol wait` waits until that kernel has
ended and what it wrote is there. A kernel all of whose threads wait before they touch global memory
computes the same with such a launch and without: those are found here.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.ops import symbol_of

_CONTROL = "nvvm.griddepcontrol"
# What touches no global memory, by the beginnings of names. (A descriptor of TMA's is the host's,
# and there before the launch.)
_HARMLESS = (
    "arith.",
    "builtin.unrealized_conversion_cast",
    "gpu.barrier",
    "gpu.block_dim",
    "gpu.block_id",
    "gpu.cluster_",
    "gpu.dynamic_shared_memory",
    "gpu.grid_dim",
    "gpu.thread_id",
    "index.",
    "llvm.mlir.constant",
    "llvm.mlir.poison",
    "llvm.mlir.undef",
    "memref.dim",
    "memref.extract_aligned_pointer_as_index",
    "memref.extract_strided_metadata",
    "memref.view",
    "nvgpu.mbarrier.create",
    "nvgpu.mbarrier.init",
    "nvgpu.tma.prefetch.descriptor",
    "nvvm.cluster.",
    "nvvm.elect.sync",
    "nvvm.fence.mbarrier.init",
    "nvvm.read.ptx.sreg.",
    "nvvm.shfl.sync",
    "scf.yield",
)


def early_kernels(gpu_module: Any) -> list[str]:
    """Their names."""
    kernels = ops.find(gpu_module, "gpu.func")
    return [symbol_of(kernel) for kernel in kernels if _waits_first(kernel)]


def _waits_first(kernel: Any) -> bool:
    for operation in kernel.regions[0].blocks[0].operations:
        if operation.name == _CONTROL:
            if "wait" in str(operation.operation.attributes["kind"]):
                return True
        elif not _is_harmless(operation.operation):
            return False
    return False


def _is_harmless(operation: Any) -> bool:
    if operation.name == "scf.if":
        return all(
            _is_harmless(inner.operation)
            for region in operation.regions
            for block in region.blocks
            for inner in block.operations
        )
    return bool(operation.name.startswith(_HARMLESS))
