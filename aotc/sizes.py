"""Sizes of types in memory."""

from __future__ import annotations

import math
from typing import Any

from aotc.mlir import ir

# In bytes: no processor has wider addresses. Equal to MAX_BYTES of runtime_c/src/entry_check.c.
LARGEST_MEMORY = 1 << 56


def dense_bytes(type_: Any) -> int | None:
    """The bytes of a tensor or memref of static shape; None if elements are not whole bytes.

    This is the size of the contents of a dense constant of that type, and of a variable.
    """
    size = element_bytes(type_.element_type)
    return None if size is None else math.prod(type_.shape) * size


def element_bytes(type_: Any) -> int | None:
    if isinstance(type_, ir.ComplexType):
        part = element_bytes(type_.element_type)
        return None if part is None else 2 * part
    if isinstance(type_, ir.IndexType):
        return 8
    try:
        bits = int(type_.width)
    except AttributeError:
        return None
    # 80-bit numbers are padded.
    return bits // 8 if bits in (8, 16, 32, 64, 128) else None
