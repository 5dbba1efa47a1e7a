"""Removing blocks that control never reaches.

MLIR's greedy rewriting visits them, too. It merges the blocks of a loop that nothing enters, its
values are then made of themselves (`%i = arith.addi %i, %one`), and folding these has no end: seen
with LLVM 22 and 24. So no branch may turn out constant while it rewrites.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aotc import ops
from aotc.mlir import PassManager, ir
from aotc.ops import walk
from aotc.rewrites.switches import switch_branches


def fold_branches(module: Any) -> None:
    """Before `canonicalize`: takes the branches that it would find constant, erases the rest."""
    if erase_unreachable_blocks(module):
        manager = PassManager.parse("builtin.module(sccp)")
        manager.enable_verifier(False)  # whoever runs passes does it
        manager.run(module)
        erase_unreachable_blocks(module)


def erase_unreachable_blocks(operation: Any) -> bool:
    """Erases, in all regions within `operation`, the blocks that their entry does not lead to.

    A branch on a constant leads to the block that it takes, and becomes unconditional. Returns
    whether any branches of `cf` are left that are not.
    """
    regions: list[Any] = []
    leaves: set[str] = set()  # kinds of operations without regions: to ask each takes longer
    has_branches, go_on = False, ir.WalkResult.ADVANCE

    def visit(inner: Any) -> Any:
        nonlocal has_branches
        name = inner.name
        if name in leaves:
            return go_on
        if name in _BRANCHES:
            has_branches = True
        elif len(inner.regions):
            regions.extend(inner.regions)
        else:
            leaves.add(name)
        return go_on

    operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    # The inner ones first: those of a block that goes are gone with it.
    is_changed = False
    for region in reversed(regions):
        blocks = list(region.blocks)
        if len(blocks) > 1:
            is_changed |= _erase(region, blocks)
    if not is_changed:
        return has_branches
    return has_branches and any(inner.name in _BRANCHES for inner in walk(operation))


def _erase(region: Any, blocks: list[Any]) -> bool:
    """Whether a branch or a block is another, or gone."""
    taken = [_take_constant_branch(block) for block in blocks]
    reached, left = {blocks[0]}, [blocks[0]]
    while left:
        for successor in left.pop().successors:
            if successor not in reached:
                reached.add(successor)
                left.append(successor)
    unreached = [block for block in blocks if block not in reached]
    if not unreached:
        return any(taken)
    # The bindings erase no blocks; erasing an operation takes the blocks in its region with it.
    with region.owner.location:
        grave = ir.Operation.create("scf.execute_region", regions=1)
    for block in unreached:
        block.append_to(grave.regions[0])
    ops.erase(grave)
    return True


def _take_constant_branch(block: Any) -> bool:
    """Replaces a cf.cond_br or cf.switch on a constant by a cf.br; whether there was one."""
    if len(block.successors) < 2:
        return False
    branch = ops.terminator(block)
    if branch.name not in _BRANCHES:
        return False
    condition = branch.operands[0].owner
    if isinstance(condition, ir.Block) or condition.name != "arith.constant":
        return False
    target, operands = _BRANCHES[branch.name](branch, condition.attributes["value"])
    with ir.InsertionPoint(branch), branch.location:
        ir.Operation.create("cf.br", operands=operands, successors=[target])
    ops.erase(branch)
    return True


def _taken_of_two(branch: Any, condition: Any) -> tuple[Any, list[Any]]:
    """The block that a cf.cond_br takes, and what it gives to it."""
    true_count = ir.DenseI32ArrayAttr(branch.attributes["operandSegmentSizes"])[1]
    first_of_false = 1 + true_count
    operands = list(branch.operands)
    if bool(ir.BoolAttr(condition).value):
        return branch.successors[0], operands[1:first_of_false]
    return branch.successors[1], operands[first_of_false:]


def _taken_of_many(switch: Any, flag: Any) -> tuple[Any, list[Any]]:
    """As `_taken_of_two`, of a cf.switch."""
    # Of i1, the bindings say -1 for a constant and 1 for a case: so without a sign.
    bits = 2 ** ir.IntegerType(ir.IntegerAttr(flag).type).width
    value = ir.IntegerAttr(flag).value % bits
    default, *cases = switch_branches(switch)
    taken = next((one for one in cases if one.value % bits == value), default)
    return taken.block, taken.operands


_BRANCHES: dict[str, Callable[[Any, Any], tuple[Any, list[Any]]]] = {
    "cf.cond_br": _taken_of_two,
    "cf.switch": _taken_of_many,
}
