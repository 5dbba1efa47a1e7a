"""The synchronizations of thread functions: calls of functions that no object defines.

Everything that threads do together is made of these two. `flow` cuts a thread function at the
calls, so that nothing of them is left. A failure (`FAIL`) is a call of the same kind: what comes
behind it is unreachable.
"""

from __future__ import annotations

from typing import Any

from aotc.mlir import ir
from aotc.ops import create

# All threads of the block.
BARRIER = "aotc_cpu_barrier"
# All lanes of the warp: threads whose linear ids agree but for the last 5 bits.
WARP_SYNC = "aotc_cpu_warp_sync"
# (block, message, thread_id x, y, z); does not return.
FAIL = "aotc_cpu_fail"

# What each warp has to exchange values through, in bytes: both multiplicands of the largest product
# of matrices, see expand/products.py.
WARP_SLOTS = 2048

DECLARATIONS = {
    BARRIER: "llvm.func @aotc_cpu_barrier()",
    WARP_SYNC: "llvm.func @aotc_cpu_warp_sync()",
    FAIL: "llvm.func @aotc_cpu_fail(!llvm.ptr, !llvm.ptr, i64, i64, i64)",
}


def barrier() -> None:
    """Waits for all threads of the block."""
    _call(BARRIER, [])


def warp_sync() -> None:
    """Waits for all lanes of the warp."""
    _call(WARP_SYNC, [])


def fail(operands: list[Any]) -> None:
    """Ends the launch with an error; the operands are those of `FAIL`."""
    _call(FAIL, operands)


def _call(name: str, operands: list[Any]) -> None:
    create(
        "llvm.call",
        operands,
        attributes={
            "callee": ir.FlatSymbolRefAttr.get(name),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )
