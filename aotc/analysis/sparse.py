"""Which tensors are sparse, and the formats of their levels."""

from __future__ import annotations

import re
from typing import Any

from aotc.mlir import ir

_LEVEL = re.compile(r": (\w+)((?:\([^()]*\))?)")


def is_sparse(type_: Any) -> bool:
    """Whether it is a tensor with an encoding of the sparse_tensor dialect."""
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is None:
        return False
    return str(type_.encoding).startswith("#sparse_tensor.")


def levels_of(type_: Any) -> list[tuple[str, str]]:
    """The formats of the levels with their properties: ("compressed", "(nonunique)")."""
    levels = str(type_.encoding).partition("->")[2]
    return [(found[1], found[2]) for found in _LEVEL.finditer(levels)]
