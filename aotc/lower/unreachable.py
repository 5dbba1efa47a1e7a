"""Removing blocks that control never reaches.

MLIR's greedy rewriting visits them, too: seen with mlir 22 to merge the blocks of an unreachable
loop for ever.
"""

from __future__ import annotations

from typing import Any

from aotc.mlir import ir


def erase_unreachable_blocks(operation: Any) -> None:
    """Erases, in all regions within `operation`, the blocks that their entry does not lead to.

    A branch on a constant leads to the block that it takes, and becomes unconditional.
    """
    for region in operation.regions:
        blocks = list(region.blocks)
        if len(blocks) > 1:
            _erase(region, blocks)
        for block in region.blocks:
            for inner in block.operations:
                erase_unreachable_blocks(inner.operation)


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
    grave.erase()


def _take_constant_branch(block: Any) -> None:
    """Replaces a cf.cond_br on a constant by a cf.br."""
    operations = list(block.operations)
    if not operations or operations[-1].operation.name != "cf.cond_br":
        return
    branch = operations[-1].operation
    condition = branch.operands[0].owner
    if isinstance(condition, ir.Block) or condition.name != "arith.constant":
        return
    is_taken = bool(ir.BoolAttr(condition.attributes["value"]).value)
    true_count = ir.DenseI32ArrayAttr(branch.attributes["operandSegmentSizes"])[1]
    first_of_false = 1 + true_count
    operands = list(branch.operands)
    with ir.InsertionPoint(branch), branch.location:
        ir.Operation.create(
            "cf.br",
            operands=operands[1:first_of_false] if is_taken else operands[first_of_false:],
            successors=[branch.successors[0 if is_taken else 1]],
        )
    branch.erase()
