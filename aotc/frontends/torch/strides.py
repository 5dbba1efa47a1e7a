"""Decompositions for programs that depend on strides, which decompositions of other operators do
not always give as the operators do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Tensor = Any


def stride_decompositions(aten: Any) -> dict[Any, Any]:
    import torch

    return {
        aten.view.default: _view,
        torch.ops.prims.copy_strided.default: lambda x, _: x.clone(),
    }


def _view(x: Tensor, size: Sequence[int]) -> Tensor:
    """Copies a tensor whose strides do not allow the view: torch.export has checked those that the
    program has."""
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    view = torch.ops.aten.view.default
    with _disable_current_modes(), x.fake_mode:
        try:
            view(x, size)
        except (RuntimeError, ValueError):
            is_possible = False
        else:
            is_possible = True
    if is_possible:
        return NotImplemented
    return view(x.clone(memory_format=torch.contiguous_format), size)
