"""Replaces tensors without elements in PyTorch's graph by constants, because some of torch-mlir's
passes divide by the number of elements."""

from __future__ import annotations

from typing import Any


def fold_empties(program: Any) -> None:
    """Replaces each node whose result has known sizes, one of them 0, by `aten.full`. Changes the
    graph of a `torch.export.ExportedProgram` in place."""
    import torch

    full = torch.ops.aten.full.default
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor):
            continue
        sizes = list(value.shape)
        if all(isinstance(size, int) for size in sizes) and 0 in sizes:
            node.target, node.args = full, (sizes, 0)
            node.kwargs = {"dtype": value.dtype, "device": torch.device("cpu")}
