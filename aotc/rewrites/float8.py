"""`arith.extf` of f8 → arithmetic on bits: upstream has it for no chip, and for no CPU."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.builder import FLOAT8, Builder
from aotc.mlir import ir

_WIDEN = "arith.extf"


def expand_float8(root: Any) -> None:
    """Rewrites those under `root`, of numbers and vectors, in place."""
    b = Builder()
    for operation in ops.find(root, _WIDEN):
        value, target = operation.operands[0], operation.results[0].type
        if str(ops.element_type(value.type)) in FLOAT8:
            with operation.location, ir.InsertionPoint(operation):
                operation.results[0].replace_all_uses_with(b.widen_float8(value, target))
            ops.erase(operation)
