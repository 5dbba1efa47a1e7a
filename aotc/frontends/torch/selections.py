"""Operators that choose among elements, where torch-mlir's lowering forgets a check or a shape."""

from __future__ import annotations

from typing import Any

Tensor = Any


def selection_decompositions(aten: Any) -> dict[Any, Any]:
    return {
        aten.one_hot.default: _one_hot,
        aten.where.self: _where,
        aten.index_select.default: _index_select,
    }


def _one_hot(x: Tensor, num_classes: int = -1) -> Tensor:
    """The classes are read from a table, as reads are checked (see torch_mlir/reads.py)."""
    import torch

    if isinstance(num_classes, int) and num_classes < 1:
        return NotImplemented
    classes = torch.arange(num_classes, device=x.device)
    read = classes.index_select(0, x.reshape(-1)).reshape(x.shape)
    return (read.unsqueeze(-1) == classes).long()


def _where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """A choice between a tensor and itself, which torch-mlir folds to the tensor, has the shape of
    a larger condition."""
    import torch

    broadcast = torch.ops.aten.broadcast_tensors.default
    return broadcast([x, condition])[0] if x is y else NotImplemented


def _index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """The selection of one index where there is one, which torch-mlir folds to `x` without looking
    at the index, is gathered. A tensor of rank 0 is a row of one element."""
    row = x.reshape(1) if x.dim() == 0 else x
    counts = row.shape[dim], index.numel()
    if not all(isinstance(count, int) and count == 1 for count in counts):
        return NotImplemented
    return row.gather(dim, index.reshape([1] * row.dim()).expand(row.shape)).reshape(x.shape)
