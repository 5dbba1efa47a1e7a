"""The temporaries of an entry on a GPU → how many bytes they are, for callers who give the memory.

What an entry allocates outside of its loops and branches counts, one allocation behind the other,
as `aotc_workspace_set` hands memory out.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.input.entries import ENTRY_ATTRIBUTE
from aotc.lower.placement.arena import ALIGNMENT, plain_bytes
from aotc.lower.tensors.result_sizes import create_size_function
from aotc.mlir import ir
from aotc.module_names import WORKSPACE_BYTES, WORKSPACE_SIZE
from aotc.sizes import LARGEST_MEMORY


def size_workspace(entry: Any) -> None:
    """Says of an entry of one block how many bytes it needs: by an attribute where that is known,
    else by a function of the sizes of its arguments, unless they depend on elements."""
    if ENTRY_ATTRIBUTE not in entry.attributes:
        return
    (block,) = entry.regions[0].blocks
    found = [(op.operation, plain_bytes(op.operation)) for op in block.operations]
    buffers = [(allocation, size) for allocation, size in found if size is not None]
    if all(not list(allocation.operands) for allocation, _ in buffers):
        total = sum(_aligned(size) for _, size in buffers)
        if total > 0:
            entry.attributes[WORKSPACE_BYTES] = ir.IntegerAttr.get(ops.integer(64), total)
        return
    with entry.location, ir.InsertionPoint.after(entry):
        function, sizes = create_size_function(entry, WORKSPACE_SIZE, 1)
        with ir.InsertionPoint(function.regions[0].blocks[0]):
            total = ops.constant_index(0)
            for allocation, size in buffers:
                factors = [sizes.find(operand) for operand in allocation.operands]
                if any(factor is None for factor in factors):
                    ops.erase(function)
                    return
                total = _added(total, ops.capped_product([ops.constant_index(size), *factors]))
            ops.create("func.return", [total])


def _aligned(size: int) -> int:
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT


def _added(total: Any, size: Any) -> Any:
    """The bytes of both, where the second one begins aligned; a number that is too large stays so.
    Memory of no bytes gets one."""
    size = ops.index_op("arith.maxui", size, ops.constant_index(1))
    size = ops.index_op("arith.minui", size, ops.constant_index(2 * LARGEST_MEMORY))
    size = ops.index_op("arith.addi", size, ops.constant_index(ALIGNMENT - 1))
    size = ops.index_op("arith.andi", size, ops.constant_index(-ALIGNMENT))
    return ops.index_op("arith.addi", total, size)
