"""`aotc-decompose`: operations that are made of others become these."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.schedules import decompose


class Decompose(OwnPass, frozen=True):
    name = "aotc-decompose"
    reason: str = (
        "operations that are made of others (softmax, pack, pad, gather, contract) become these"
    )

    def run(self, lowering: Lowering) -> None:
        decompose(lowering.source)
