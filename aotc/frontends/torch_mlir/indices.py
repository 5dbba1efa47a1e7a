"""Normalizes indices in torch-mlir's torch dialect for its lowering.

In PyTorch, a negative index counts from the end of its dimension. torch-mlir's lowering does this
in reads (`x[i]`), but not in writes (`x[i] = y`). In reads, it compares a 32-bit index with a
64-bit one, which does not verify.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.frontends.torch_mlir.dialect import converted, create, element_of, integer, with_element

_READS = (
    *("torch.aten.index.Tensor", "torch.aten.index.Tensor_hacked_twin"),
    "torch.aten._unsafe_index.Tensor",
)
_WRITES = ("torch.aten.index_put", "torch.aten.index_put.hacked_twin")
_INT64 = 4  # PyTorch's number of the type


def normalize_indices(module: Any) -> None:
    """Changes the indices of reads and writes in a module of the torch dialect, in place."""
    from torch_mlir import ir

    with module.context:
        for operation in ops.find(module.operation, *_READS, *_WRITES):
            indices = ops.defining(operation.operands[1])
            if indices is None or indices.name != "torch.prim.ListConstruct":
                continue
            change = _counted_from_start if operation.name in _WRITES else _extended
            with operation.location, ir.InsertionPoint(operation):
                changed = [
                    change(operation.operands[0], dimension, index)
                    if (element_of(index) or "").startswith("si")
                    else index
                    for dimension, index in enumerate(indices.operands)
                ]
                made = ops.create(indices.name, changed, [indices.results[0].type])
                operation.operands[1] = made.result


def _extended(_tensor: Any, _dimension: int, index: Any) -> Any:
    if element_of(index) == "si64":
        return index
    return converted(index, _INT64, with_element(index.type, "si64"))


def _counted_from_start(tensor: Any, dimension: int, index: Any) -> Any:
    size = create("aten.size.int", "int", tensor, integer(dimension))
    is_negative = create("aten.lt.Scalar", with_element(index.type, "i1"), index, integer(0))
    from_start = create("aten.add.Scalar", index.type, index, size, integer(1))
    return create("aten.where.self", index.type, is_negative, from_start, index)
