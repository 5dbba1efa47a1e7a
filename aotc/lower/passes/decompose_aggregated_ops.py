"""`aotc-decompose-aggregated-ops`: replaces composite operations by simpler ones."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.schedules import decompose


class DecomposeAggregatedOps(OwnPass, frozen=True):
    name = "aotc-decompose-aggregated-ops"
    reason: str = "composite operations (softmax, pack, pad, gather, contract) are decomposed"

    def run(self, lowering: Lowering) -> None:
        decompose(lowering.source)
