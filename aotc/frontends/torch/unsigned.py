"""`any` and `all` of bytes, whose results are bytes, 0 or 1. torch-mlir lowers others."""

from __future__ import annotations

import functools
from typing import Any

Tensor = Any


def unsigned_decompositions(aten: Any) -> dict[Any, Any]:
    operators = (
        *(aten.any.default, aten.any.dim, aten.any.dims),
        *(aten.all.default, aten.all.dim),
    )
    return {operator: functools.partial(_of_truths, operator) for operator in operators}


def _of_truths(operator: Any, x: Tensor, *given: Any) -> Tensor:
    import torch

    return operator(x.bool(), *given).to(x.dtype) if x.dtype == torch.uint8 else NotImplemented
