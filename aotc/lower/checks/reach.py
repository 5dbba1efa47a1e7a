"""Whether an operation is executed when its function is called: never, or in each call.

Operations in a branch, or in a loop whose bounds are unknown, are in between.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.extents import bounds_of, is_empty
from aotc.analysis.values import evaluate
from aotc.mlir import ir

_FUNCTIONS = ("async.func", "func.func", "gpu.func", "llvm.func")
# Operations that execute their only region exactly once.
_RUN_ONCE = ("async.execute", "memref.alloca_scope", "scf.execute_region")


def never_runs(operation: Any, region: int) -> bool:
    """Whether a constant keeps `operation` from executing the region with this number."""
    bounds = bounds_of(operation)
    if bounds is not None:
        return any(map(is_empty, bounds))
    chosen = _chosen_region(operation)
    return chosen is not None and chosen != region


def _chosen_region(operation: Any) -> int | None:
    """The region of a branch that a constant selects; None for other operations."""
    if operation.name not in ("scf.if", "scf.index_switch"):
        return None
    value = evaluate(operation.operands[0])
    if value is None:
        return None
    if operation.name == "scf.if":
        return 0 if value != 0 else 1
    cases = list(ir.DenseI64ArrayAttr(operation.attributes["cases"]))
    return 1 + cases.index(value) if value in cases else 0  # the default comes first


def reachable_blocks(region: Any, *, without: Any = None) -> set[Any]:
    """The blocks of a region that are reachable from its entry without passing through
    `without`."""
    blocks = region.blocks
    seen = set() if without is None else {without}
    pending = [blocks[0]] if len(blocks) > 0 else []
    found: set[Any] = set()
    while pending:
        block = pending.pop()
        if block not in seen:
            seen.add(block)
            found.add(block)
            pending += _successors(block)
    return found


def _successors(block: Any) -> list[Any]:
    # A region of one block may have no terminator, and need none.
    last = ops.terminator(block) if len(block.operations) > 0 else None
    if last is None:
        return []
    successors = list(last.successors)
    condition = evaluate(last.operands[0]) if last.name == "cf.cond_br" else None
    return successors if condition is None else [successors[0 if condition != 0 else 1]]


def runs_in_every_call(operation: Any, *, of: Any = None) -> bool:
    """Whether each call that returns executes `operation`.

    The call is one of the operation's function; or, with `of`, of this function or `gpu.launch`
    around it.
    """
    while operation.name not in _FUNCTIONS:
        block = operation.block
        if not _is_on_every_path(block):
            return False
        parent = block.owner.operation
        if of is not None and parent == of:
            return True
        if not _runs_surely(parent, list(parent.regions).index(block.region)):
            return False
        operation = parent
    return True


def _is_on_every_path(block: Any) -> bool:
    """Whether each path through the region passes through the block."""
    others = reachable_blocks(block.region, without=block)
    return not any(len(ops.terminator(other).successors) == 0 for other in others)


def _runs_surely(operation: Any, region: int) -> bool:
    """Whether `operation` executes that region whenever it is executed itself."""
    if operation.name in _FUNCTIONS or operation.name in _RUN_ONCE:
        return True
    if operation.name == "scf.while":
        return region == 0
    bounds = bounds_of(operation)
    if bounds is not None:
        return all(low is not None and high is not None and low < high for low, high, _ in bounds)
    return _chosen_region(operation) == region
