"""`aotc-mark-tensors`: bufferization is told which tensors are the caller's."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.functions import mark_tensors


class MarkTensors(OwnPass, frozen=True):
    name = "aotc-mark-tensors"
    reason: str = (
        "tensors that entries take are the caller's, and only read; those that they return are "
        "remembered"
    )

    def run(self, lowering: Lowering) -> None:
        mark_tensors(lowering.module)
