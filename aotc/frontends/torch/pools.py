"""Gives pooling operators without a batch dimension a batch of one, because torch-mlir requires the
dimension."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

Tensor = Any


def pool_decompositions(aten: Any) -> dict[Any, Any]:
    ranks = {
        aten.max_pool2d_with_indices.default: 2,
        aten.max_pool3d.default: 3,
        aten.max_pool3d_with_indices.default: 3,
        aten.avg_pool1d.default: 1,
        aten.avg_pool2d.default: 2,
        aten.avg_pool3d.default: 3,
    }
    return {
        operator: functools.partial(_in_batch, operator, rank) for operator, rank in ranks.items()
    }


def _in_batch(pool: Callable[..., Any], rank: int, x: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Returns NotImplemented if `x` has a batch dimension before the channels and the `rank`
    dimensions."""
    if x.dim() != rank + 1:
        return NotImplemented
    result = pool(x.unsqueeze(0), *args, **kwargs)
    if isinstance(result, tuple):
        return tuple(one.squeeze(0) for one in result)
    return result.squeeze(0)
