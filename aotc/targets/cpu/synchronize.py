"""The synchronizations of thread functions: calls of functions that no object defines.

All cooperation of threads is built from these. `flow` splits a thread function at the calls that
wait, so that none of them is left. A failure (`FAIL`) is a call of the same kind: the code after
it is unreachable.
"""

from __future__ import annotations

from typing import Any

from aotc.host.kernels import SyncScope
from aotc.llvm_ops import call_llvm

# Waits for all threads of the block.
BARRIER = "aotc_cpu_barrier"
# Waits for all lanes of the warp: the threads whose linear ids differ only in the last 5 bits.
WARP_SYNC = "aotc_cpu_warp_sync"
# Waits for the threads of a named barrier, after an `ARRIVE` at it.
NAMED_SYNC = "aotc_cpu_named_sync"
# (block, linear thread id, barrier number, number of threads of the barrier); does not wait.
ARRIVE = "aotc_cpu_arrive"
# (block, message, thread_id x, y, z); does not return.
FAIL = "aotc_cpu_fail"

# C's function that formats the message of a failure with numbers, and the buffer that it writes to.
# The buffer is not on the stack, as the threads of a block share a function's stack frame.
WRITE = "snprintf"
MESSAGE = "aotc_cpu_message"
MESSAGE_BYTES = 2048

SYNCHRONIZATIONS = {
    BARRIER: SyncScope.BLOCK,
    WARP_SYNC: SyncScope.WARP,
    NAMED_SYNC: SyncScope.NAMED,
}

# The bytes through which each warp exchanges values: enough for both multiplicands of the largest
# matrix product, see expand/matmul.py.
WARP_SLOTS = 2048

DECLARATIONS = {
    BARRIER: "llvm.func @aotc_cpu_barrier()",
    WARP_SYNC: "llvm.func @aotc_cpu_warp_sync()",
    NAMED_SYNC: "llvm.func @aotc_cpu_named_sync()",
    ARRIVE: "llvm.func @aotc_cpu_arrive(!llvm.ptr, i64, i32, i32)",
    FAIL: "llvm.func @aotc_cpu_fail(!llvm.ptr, !llvm.ptr, i64, i64, i64)",
}


# The declarations of a module in which `WRITE` is called.
WRITE_TEXTS = (
    f"llvm.func @{WRITE}(!llvm.ptr, i64, !llvm.ptr, ...) -> i32",
    f"""llvm.mlir.global internal thread_local @{MESSAGE}()
    {{addr_space = 0 : i32}} : !llvm.array<{MESSAGE_BYTES} x i8> {{
  %zero = llvm.mlir.zero : !llvm.array<{MESSAGE_BYTES} x i8>
  llvm.return %zero : !llvm.array<{MESSAGE_BYTES} x i8>
}}""",
)


def barrier() -> None:
    """Waits for all threads of the block."""
    call_llvm(BARRIER, [])


def warp_sync() -> None:
    """Waits for all lanes of the warp."""
    call_llvm(WARP_SYNC, [])


def arrive(operands: list[Any]) -> None:
    """Arrives at a named barrier. The operands are those of `ARRIVE`."""
    call_llvm(ARRIVE, operands)


def named_sync() -> None:
    """Waits for the other threads of the named barrier at which this thread arrived last."""
    call_llvm(NAMED_SYNC, [])


def fail(operands: list[Any]) -> None:
    """Ends the launch with an error. The operands are those of `FAIL`."""
    call_llvm(FAIL, operands)
