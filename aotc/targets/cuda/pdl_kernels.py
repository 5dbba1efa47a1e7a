"""Kernels for programmatic dependent launch (PDL), which sm_90 and later have.

A kernel that is launched with PDL may start while the previous kernel of its stream still runs: its
blocks are scheduled to multiprocessors that the previous kernel has left, or has released by
`nvvm.griddepcontrol launch_dependents`. `nvvm.griddepcontrol wait` blocks until the previous kernel
has ended and its writes are visible. A kernel whose threads all execute the wait before they access
global memory computes the same with and without PDL, and so does one that only reads constants
before, as no kernel writes these. This module finds these kernels.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from aotc import ops
from aotc.attributes import READS_CONSTANT
from aotc.ops import symbol_of
from aotc.symbols import is_kernel

_CONTROL = "nvvm.griddepcontrol"
# Prefixes of operations that do not access global memory. (A TMA descriptor is made by the host
# before the launch.)
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
    "nvgpu.device_async_create_group",
    "nvgpu.mbarrier.create",
    "nvgpu.mbarrier.init",
    "nvgpu.tma.prefetch.descriptor",
    "nvvm.cluster.",
    "nvvm.elect.sync",
    "nvvm.fence.mbarrier.init",
    "nvvm.read.ptx.sreg.",
    "nvvm.shfl.sync",
    "scf.yield",
    "vector.bitcast",
    "vector.extract",
)
_LOADS = ("memref.load", "nvgpu.device_async_copy", "vector.load")


def pdl_kernels(gpu_module: Any, given_waits: Collection[str] = ()) -> list[str]:
    """The names of these kernels, including those that get a wait in PTX (`ptx_waits`)."""
    return [
        symbol_of(kernel)
        for kernel in _kernels(gpu_module)
        if symbol_of(kernel) in given_waits or _waits_first(kernel)
    ]


def kernels_without_control(gpu_module: Any) -> list[str]:
    """The names of kernels without operations of PDL, which may be given a wait."""
    return [symbol_of(kernel) for kernel in _kernels(gpu_module) if not ops.find(kernel, _CONTROL)]


def _kernels(gpu_module: Any) -> list[Any]:
    return [kernel for kernel in ops.find(gpu_module, "gpu.func") if is_kernel(kernel)]


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
    if operation.name in _LOADS:
        return READS_CONSTANT in operation.attributes
    return bool(operation.name.startswith(_HARMLESS))
