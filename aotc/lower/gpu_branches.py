"""Branches of host code that are taken where there is a GPU, or where there is none."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.gpu_modules import runs_on
from aotc.kernels.family import CPU
from aotc.rewrites.capability import asks_for_gpu


def is_for_gpu(operation: Any) -> bool | None:
    """Whether there is a GPU where the operation stands: in a branch of a question for one, or in a
    function that is called there. None if that is not known."""
    inner = operation
    for outer in ops.ancestors(operation):
        if outer.name == "func.func" and runs_on(outer) == CPU:
            return False
        if outer.name == "scf.if" and asks_for_gpu(outer.operands[0]):
            return bool(inner.block == outer.regions[0].blocks[0])
        inner = outer
    return None
