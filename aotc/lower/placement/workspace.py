"""Computes the workspace size of an entry on a GPU, for callers that provide the memory.

It is the sum of the entry's allocations outside of loops and branches, each aligned, as
`aotc_workspace_set` hands out memory.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.attributes import WORKSPACE_BYTES
from aotc.input.entries import ENTRY_ATTRIBUTE
from aotc.lower.placement.arena import ALIGNMENT, plain_bytes
from aotc.lower.tensors.result_sizes import create_size_function
from aotc.mlir import ir
from aotc.module_names import WORKSPACE_SIZE
from aotc.sizes import LARGEST_MEMORY


def size_workspace(entry: Any) -> None:
    """Records the workspace size of an entry with one block: as an attribute if it is static,
    otherwise as a function of the sizes of the entry's arguments. Nothing is recorded if it depends
    on elements."""
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
    """The sum of `total` and the aligned `size`. A size that is too large stays too large. An
    allocation of 0 bytes counts as one byte."""
    size = ops.index_op("arith.maxui", size, ops.constant_index(1))
    size = ops.index_op("arith.minui", size, ops.constant_index(2 * LARGEST_MEMORY))
    size = ops.index_op("arith.addi", size, ops.constant_index(ALIGNMENT - 1))
    size = ops.index_op("arith.andi", size, ops.constant_index(-ALIGNMENT))
    return ops.index_op("arith.addi", total, size)
