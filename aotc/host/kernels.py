"""Kernels as host functions, and the table of them that is passed to the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from msgspec import Struct

from aotc.host.llvm_dialect import Initializer, kernel_name, string_global

# aotc_cpu_kernel and aotc_cpu_sync_point of runtime_c/include/aotc_runtime.h.
_KERNEL = "struct<(ptr, ptr, ptr, ptr, i64, i64, array<3 x i64>, ptr, i64)>"
_SYNC_POINT = "struct<(i32, ptr)>"


class SyncScope(IntEnum):
    """The threads that a thread waits for: aotc_sync_scope of aotc_runtime.h."""

    BLOCK = 0
    WARP = 1
    NAMED = 2


class SyncPoint(Struct, frozen=True):
    """A point at which a thread waits for others. `place` is its source location, for people."""

    scope: SyncScope
    place: str


class CpuKernel(Struct, frozen=True):
    """One kernel: its gpu.module, its gpu.func, and its host function.

    `symbol` names an llvm.func that runs all threads of one block, `step` one that runs one
    thread to its next synchronization: `aotc_cpu_function` and `aotc_cpu_step` of
    aotc_runtime.h. Both are None if the kernel does not run on the CPU; then `why_not` is the
    reason. The other fields are those of `aotc_cpu_kernel` there.
    """

    module: str
    kernel: str
    symbol: str | None
    why_not: str | None
    step: str | None = None
    shared_bytes: int = 0
    thread_bytes: int = 0
    block_dim: tuple[int, int, int] = (0, 0, 0)
    sync_points: tuple[SyncPoint, ...] = ()


class CpuKernels(Struct, frozen=True):
    """Host functions and the symbols that they use, in the LLVM dialect, to be merged into the host
    module."""

    module: Any
    kernels: tuple[CpuKernel, ...]


def kernel_table(name: str) -> str:
    """The symbol of the table of the gpu.module `name`."""
    return f"aotc_kernels_{name}"


def kernel_table_texts(name: str, kernels: Sequence[CpuKernel]) -> list[str]:
    """The table and what it points to, except the functions' bodies, as text of the LLVM
    dialect."""
    table = Initializer(f"!llvm.array<{len(kernels)} x {_KERNEL}>")
    texts = []
    for i, kernel in enumerate(kernels):
        name_symbol = kernel_name(name, kernel.kernel)
        texts.append(string_global(name_symbol, kernel.kernel))
        table.put_address(name_symbol, i, 0)
        # The functions themselves are merged with the CPU kernels.
        if kernel.symbol is not None:
            texts.append(declared(kernel))
            table.put_address(kernel.symbol, i, 1)
        elif kernel.step is not None:
            texts.append(declared(kernel))
            table.put_address(kernel.step, i, 3)
        else:
            reason_symbol = f"aotc_why_{name}.{kernel.kernel}"
            texts.append(string_global(reason_symbol, kernel.why_not or "it has no CPU form"))
            table.put_address(reason_symbol, i, 2)
        table.put_number(kernel.shared_bytes, "i64", i, 4)
        table.put_number(kernel.thread_bytes, "i64", i, 5)
        for dimension, size in enumerate(kernel.block_dim):
            table.put_number(size, "i64", i, 6, dimension)
        if kernel.sync_points:
            symbol = f"aotc_syncs_{name}.{i}"
            texts += _sync_point_texts(symbol, kernel.sync_points)
            table.put_address(symbol, i, 7)
            table.put_number(len(kernel.sync_points), "i64", i, 8)
    return [*texts, table.text(kernel_table(name))]


def declared(kernel: CpuKernel, *, hidden: bool = False) -> str:
    """The declaration of the kernel's function, if it has one."""
    visibility = "hidden " if hidden else ""
    if kernel.symbol is not None:
        return f'llvm.func {visibility}@"{kernel.symbol}"(!llvm.ptr, !llvm.ptr)'
    if kernel.step is not None:
        return f'llvm.func {visibility}@"{kernel.step}"(!llvm.ptr, !llvm.ptr, i64, i32) -> i32'
    return ""


def _sync_point_texts(symbol: str, points: Sequence[SyncPoint]) -> list[str]:
    table = Initializer(f"!llvm.array<{len(points)} x {_SYNC_POINT}>")
    texts = []
    for i, point in enumerate(points):
        place_symbol = f"{symbol}.{i}"
        texts.append(string_global(place_symbol, point.place))
        table.put_number(int(point.scope), "i32", i, 0)
        table.put_address(place_symbol, i, 1)
    return [*texts, table.text(symbol)]
