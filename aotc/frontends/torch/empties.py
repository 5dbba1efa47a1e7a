"""Tensors without elements in PyTorch's graph → constants: some of torch-mlir's passes divide by
the number of elements."""

from __future__ import annotations

from typing import Any


def fold_empties(program: Any) -> None:
    """Changes the graph of a `torch.export.ExportedProgram` in place: what computes a tensor whose
    sizes are known, one of them 0, becomes `aten.full`."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    full = torch.ops.aten.full.default
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor):
            continue
        sizes = list(value.shape)
        if all(isinstance(size, int) for size in sizes) and 0 in sizes:
            node.target, node.args = full, (sizes, 0)
            node.kwargs = {"dtype": value.dtype, "device": torch.device("cpu")}
