"""`vector.mask` → the same operation, marked so that CSE does not drop the mask.

MLIR's common subexpression elimination takes a masked operation as equal to one outside of the mask
that has the same operands, and replaces it; the mask is lost. An attribute makes the two different.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.attributes import MASKED
from aotc.mlir import ir


def mark_masked(module: Any) -> None:
    """Changes `module` in place. It must run before any simplification."""
    with module.context:
        for mask in ops.find(module.operation, "vector.mask"):
            for operation in mask.regions[0].blocks[0].operations:
                if operation.operation.name != "vector.yield":
                    operation.operation.attributes[MASKED] = ir.UnitAttr.get()
