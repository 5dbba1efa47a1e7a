"""Indices of assignments in torch-mlir's torch dialect are counted from the start.

PyTorch counts a negative index from the end of its dimension. torch-mlir's lowering takes it so in
reads (`x[i]`), and not in writes (`x[i] = y`).
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.frontends.torch_mlir.dialect import create, element_of, integer, with_element

_WRITES = ("torch.aten.index_put", "torch.aten.index_put.hacked_twin")


def count_from_start(module: Any) -> None:
    """Changes the indices of `index_put` in `module`, of the torch dialect, in place."""
    from torch_mlir import ir

    with module.context:
        for write in ops.find(module.operation, *_WRITES):
            indices = ops.defining(write.operands[1])
            if indices is None or indices.name != "torch.prim.ListConstruct":
                continue
            with write.location, ir.InsertionPoint(write):
                counted = [
                    _counted(write.operands[0], dimension, index)
                    if (element_of(index) or "").startswith("si")
                    else index
                    for dimension, index in enumerate(indices.operands)
                ]
                made = ops.create(indices.name, counted, [indices.results[0].type])
                write.operands[1] = made.result


def _counted(tensor: Any, dimension: int, index: Any) -> Any:
    size = create("aten.size.int", "int", tensor, integer(dimension))
    is_negative = create("aten.lt.Scalar", with_element(index.type, "i1"), index, integer(0))
    from_start = create("aten.add.Scalar", index.type, index, size, integer(1))
    return create("aten.where.self", index.type, is_negative, from_start, index)
