"""Comparisons and quotients of thread ids → the same of the warp's id, if they are uniform in a
warp.

In a block of one row, `thread_id.x < 64` and `thread_id.x / 64` are the same for all lanes of a
warp: `warp < 2` and `warp / 2`. In this form, the analysis sees that a warp takes a branch
together, so that its threads need not be synchronized as if they might diverge.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.chips import WARP
from aotc.mlir import ir
from aotc.ops import binary, callee_of, create, unary, walk
from aotc.targets.cpu import build
from aotc.targets.cpu.synchronize import WARP_SYNC
from aotc.targets.cpu.thread_function import CONTEXT, Size

# llvm.icmp's predicates for "below a limit" (slt, sge, ult, uge), and for "up to a limit" (sle,
# sgt, ule, ugt).
_BELOW = (2, 5, 6, 9)
_UP_TO = (3, 4, 7, 8)
_SWAPPED = {0: 0, 1: 1, 2: 4, 4: 2, 3: 5, 5: 3, 6: 8, 8: 6, 7: 9, 9: 7}
_CASTS = ("llvm.trunc", "llvm.sext", "llvm.zext")


def rewrite_to_warp_ids(function: Any, block_size: Size | None) -> None:
    """Rewrites a thread function in the LLVM dialect, in place, if its lanes exchange values.

    In other functions, the ids themselves give the threads with work (see `region_guards`).
    """
    if not any(_is_exchange(operation) for operation in walk(function)):
        return
    entry = function.regions[0].blocks[0]
    first = len(entry.arguments) - len(CONTEXT)
    context = {name: entry.arguments[first + number] for number, name in enumerate(CONTEXT)}
    warp = context["warp"]
    _rewrite_users(context["linear"], warp)
    if block_size is None:
        return
    width, height, depth = block_size
    if height == 1 and depth == 1:
        _rewrite_users(context["thread_id.x"], warp)
    elif width % WARP == 0:
        with ir.InsertionPoint.at_block_begin(entry), function.location:
            in_row = build.remainder(warp, build.number(width // WARP))
        _rewrite_users(context["thread_id.x"], in_row)


def _is_exchange(operation: Any) -> bool:
    is_direct_call = operation.name == "llvm.call" and "callee" in operation.attributes
    return is_direct_call and callee_of(operation) == WARP_SYNC


def _rewrite_users(thread: Any, warp: Any) -> None:
    """Rewrites users of an id, also of the id in fewer or more bits. (An id has at most ten.)"""
    for user in [use.owner.operation for use in thread.uses]:
        with ir.InsertionPoint(user), user.location:
            if user.name in _CASTS and ir.IntegerType(user.result.type).width >= 16:
                _rewrite_users(user.result, unary(user.name, warp, user.result.type))
                continue
            replacement = _by_warp(user, thread, warp)
        if replacement is not None:
            ops.replace(user, [replacement])


def _by_warp(user: Any, thread: Any, warp: Any) -> Any | None:
    """The result of `user`, computed from the warp's id; None if it may differ in a warp."""
    if len(user.operands) != 2:
        return None
    left, right = user.operands
    if user.name == "llvm.icmp":
        predicate = int(ir.IntegerAttr(user.attributes["predicate"]).value)
        if left != thread:
            left, right, predicate = right, left, _SWAPPED[predicate]
        limit = build.known_number(right)
        if limit is None:
            return None
        if predicate in _BELOW and limit % WARP == 0:
            limit //= WARP
        elif predicate in _UP_TO and (limit + 1) % WARP == 0:
            limit = (limit + 1) // WARP - 1
        else:
            return None
        attributes = {"predicate": ir.IntegerAttr.get(build.i64(), predicate)}
        operands = [warp, build.number(limit, warp.type)]
        return create("llvm.icmp", operands, [user.result.type], attributes).result
    divisor = build.known_number(right)
    if left != thread or divisor is None or divisor <= 0:
        return None
    if user.name in ("llvm.lshr", "llvm.ashr") and divisor < ir.IntegerType(thread.type).width:
        divisor = 1 << divisor
    elif user.name not in ("llvm.udiv", "llvm.sdiv"):
        return None
    if divisor % WARP:
        return None
    return binary("llvm.udiv", warp, build.number(divisor // WARP, warp.type))
