"""Analysis of host branches that are only executed with a GPU, or only without one."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.gpu_modules import runs_on
from aotc.kernels.family import CPU
from aotc.rewrites.capability import asks_for_gpu


def is_for_gpu(operation: Any) -> bool | None:
    """Whether the operation is only executed with a GPU (True) or only without one (False); None if
    it may be either.

    It follows from branches that test for a GPU, and from the function's `RUNS_ON` attribute.
    """
    inner = operation
    for outer in ops.ancestors(operation):
        if outer.name == "func.func" and runs_on(outer) == CPU:
            return False
        if outer.name == "scf.if" and asks_for_gpu(outer.operands[0]):
            return bool(inner.block == outer.regions[0].blocks[0])
        inner = outer
    return None
