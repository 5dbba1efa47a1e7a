"""Analysis of host code: whether the elements that it reads choose addresses or branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotc import ops
from aotc.mlir import ir

_BRANCHES = ("llvm.br", "llvm.cond_br", "llvm.switch")
# Operations whose operands are no address, branch or size. Launches do nothing after a failure.
_HARMLESS = ("gpu.launch_func", "llvm.return")


def reads_steer(function: Any, *, is_result_used: bool) -> bool:
    """Whether an address, a branch, a size or an argument of a call of the LLVM function depends on
    a number that it reads from memory. `is_result_used`: or a result, which callers use."""
    pending = [
        load.results[0]
        for load in ops.find(function, "llvm.load")
        if isinstance(load.results[0].type, ir.IntegerType | ir.FloatType | ir.VectorType)
    ]
    seen = set(pending)
    while pending:
        value = pending.pop()
        for use in value.uses:
            user, place = use.owner.operation, use.operand_number
            if _is_steered(user, place) or (is_result_used and user.name == "llvm.return"):
                return True
            found = [one for one in _depending(user, value) if one not in seen]
            seen.update(found)
            pending += found
    return False


def _is_steered(user: Any, place: int) -> bool:
    if user.name in ("llvm.cond_br", "llvm.switch"):
        return place == 0
    if user.name == "llvm.store":
        return place == 1
    if user.name in _HARMLESS or user.name == "llvm.br":
        return False
    return user.name in ("llvm.getelementptr", "llvm.alloca", "llvm.inttoptr") or not user.results


def _depending(user: Any, value: Any) -> Iterator[Any]:
    """What an operation computes from the value, and the arguments of blocks that get it."""
    yield from user.results
    if user.name not in _BRANCHES:
        return
    for block in user.successors:
        yield from (one for one in block.arguments if one.type == value.type)
