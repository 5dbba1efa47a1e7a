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
    has_branches, go_on = False, ir.WalkResult.ADVANCE

    def visit(inner: Any) -> Any:
        nonlocal has_branches
        if len(inner.regions):
            regions.extend(inner.regions)
        elif inner.name in _BRANCHES:
            has_branches = True
        return go_on

    operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    # The inner ones first: those of a block that goes are gone with it.
    for region in reversed(regions):
        blocks = list(region.blocks)
        if len(blocks) > 1:
            _erase(region, blocks)
    return has_branches and any(inner.name in _BRANCHES for inner in walk(operation))


def _erase(region: Any, blocks: list[Any]) -> None:
    for block in blocks:
        _take_constant_branch(block)
    reached, left = {blocks[0]}, [blocks[0]]
    while left:
        for successor in left.pop().successors:
            if successor not in reached:
                reached.add(successor)
                left.append(successor)
    unreached = [block for block in blocks if block not in reached]
    if not unreached:
        return
    # The bindings erase no blocks; erasing an operation takes the blocks in its region with it.
    with region.owner.location:
        grave = ir.Operation.create("scf.execute_region", regions=1)
    for block in unreached:
        block.append_to(grave.regions[0])
    ops.erase(grave)


def _take_constant_branch(block: Any) -> None:
    """Replaces a cf.cond_br or cf.switch on a constant by a cf.br."""
    operations = list(block.operations)
    if not operations or operations[-1].operation.name not in _BRANCHES:
        return
    branch = operations[-1].operation
    condition = branch.operands[0].owner
    if isinstance(condition, ir.Block) or condition.name != "arith.constant":
        return
    target, operands = _BRANCHES[branch.name](branch, condition.attributes["value"])
    with ir.InsertionPoint(branch), branch.location:
        ir.Operation.create("cf.br", operands=operands, successors=[target])
    ops.erase(branch)


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
    operands = list(switch.operands)[1:]
    default_count = ir.DenseI32ArrayAttr(switch.attributes["operandSegmentSizes"])[1]
    given = [operands[:default_count]]
    rest = operands[default_count:]
    if "case_values" not in switch.attributes:
        return switch.successors[0], given[0]
    for count in ir.DenseI32ArrayAttr(switch.attributes["case_operand_segments"]):
        given.append(rest[:count])
        rest = rest[count:]
    # Of i1, the bindings say -1 for a constant and 1 for a case: so without a sign.
    bits = 2 ** ir.IntegerType(ir.IntegerAttr(flag).type).width
    cases = [int(case) % bits for case in switch.attributes["case_values"]]
    value = ir.IntegerAttr(flag).value % bits
    taken = 1 + cases.index(value) if value in cases else 0
    return switch.successors[taken], given[taken]


_BRANCHES: dict[str, Callable[[Any, Any], tuple[Any, list[Any]]]] = {
    "cf.cond_br": _taken_of_two,
    "cf.switch": _taken_of_many,
}
