"""The synchronizations of thread functions: calls of functions that no object defines.

Everything that threads do together is made of these. `flow` cuts a thread function at the calls
that wait, so that nothing of them is left. A failure (`FAIL`) is a call of the same kind: what
comes behind it is unreachable.
"""

from __future__ import annotations

from typing import Any

from aotc.host.kernels import SyncScope
from aotc.ops import call_llvm

# All threads of the block.
BARRIER = "aotc_cpu_barrier"
# All lanes of the warp: threads whose linear ids agree but for the last 5 bits.
WARP_SYNC = "aotc_cpu_warp_sync"
# The threads that a named barrier is for, behind an `ARRIVE` at it.
NAMED_SYNC = "aotc_cpu_named_sync"
# (block, linear thread id, number of the barrier, how many threads it is for); does not wait.
ARRIVE = "aotc_cpu_arrive"
# (block, message, thread_id x, y, z); does not return.
FAIL = "aotc_cpu_fail"

# C's, for the message of a failure with numbers, and where it writes that: not on the stack, as the
# threads of a block share a function's.
WRITE = "snprintf"
MESSAGE = "aotc_cpu_message"
MESSAGE_BYTES = 2048

SYNCHRONIZATIONS = {
    BARRIER: SyncScope.BLOCK,
    WARP_SYNC: SyncScope.WARP,
    NAMED_SYNC: SyncScope.NAMED,
}

# What each warp has to exchange values through, in bytes: both multiplicands of the largest product
# of matrices, see expand/products.py.
WARP_SLOTS = 2048

DECLARATIONS = {
    BARRIER: "llvm.func @aotc_cpu_barrier()",
    WARP_SYNC: "llvm.func @aotc_cpu_warp_sync()",
    NAMED_SYNC: "llvm.func @aotc_cpu_named_sync()",
    ARRIVE: "llvm.func @aotc_cpu_arrive(!llvm.ptr, i64, i32, i32)",
    FAIL: "llvm.func @aotc_cpu_fail(!llvm.ptr, !llvm.ptr, i64, i64, i64)",
}


# What a module has in which `WRITE` is called.
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
    """Comes to a named barrier; the operands are those of `ARRIVE`."""
    call_llvm(ARRIVE, operands)


def named_sync() -> None:
    """Waits for the other threads of the named barrier that this thread came to last."""
    call_llvm(NAMED_SYNC, [])


def fail(operands: list[Any]) -> None:
    """Ends the launch with an error; the operands are those of `FAIL`."""
    call_llvm(FAIL, operands)
