"""Which tensors are sparse: `is_sparse`."""

from __future__ import annotations

from typing import Any

from aotc.mlir import ir


def is_sparse(type_: Any) -> bool:
    """Whether it is a tensor with an encoding of the sparse_tensor dialect."""
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is None:
        return False
    return str(type_.encoding).startswith("#sparse_tensor.")
