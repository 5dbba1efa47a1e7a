"""Checks reads at an index that is an element of a tensor: an index out of bounds is an error of
the call.

torch-mlir checks the indices of some operators (`aten.gather`, `aten.embedding`) against both
bounds, and does not check those of others (`aten.index`, `aten.index_select`, ONNX's Gather). Here
each index is compared once. An index that is computed from loop indices only comes from the
importer, and is in bounds.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.rewrites.checks import create_check

OUT_OF_BOUNDS = "an index is out of bounds"
_ULT = 6  # a predicate of arith.cmpi
_CHECKS = ("index must be smaller than dim size", "index must be larger or equal to 0")


def check_reads(module: Any) -> None:
    """Checks the index of each `tensor.extract` in the bodies of the module's `linalg.generic`, if
    it depends on an element. Changes the module in place."""
    from torch_mlir import ir

    for generic in ops.find(module.operation, "linalg.generic"):
        block = generic.regions[0].blocks[0]
        reads = [op for op in ops.find(generic, "tensor.extract") if op.block == block]
        for read in reads:
            _check(read)
        for assertion in ops.find(generic, "cf.assert"):
            if reads and ir.StringAttr(assertion.attributes["msg"]).value in _CHECKS:
                ops.erase(assertion)


def _check(read: Any) -> None:
    from torch_mlir import ir

    tensor, *indices = read.operands
    with read.location, ir.InsertionPoint(read):
        for dimension, index in enumerate(indices):
            if not _depends_on_element(index, read.block):
                continue
            size = ops.dim(tensor, dimension)
            message = ir.StringAttr.get(OUT_OF_BOUNDS)
            read.operands[1 + dimension] = create_check(
                ops.compare(_ULT, index, size), index, ops.constant_index(0), message
            )


def _depends_on_element(value: Any, block: Any) -> bool:
    """Whether the value depends on an argument of the block, or on an element that the block
    reads."""
    operation = ops.defining(value)
    if operation is None:
        return bool(value.owner == block)
    return operation.block == block and (
        operation.name == "tensor.extract"
        or any(_depends_on_element(operand, block) for operand in operation.operands)
    )
