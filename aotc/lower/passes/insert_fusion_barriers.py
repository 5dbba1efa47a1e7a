"""`aotc-insert-fusion-barriers`: keeps elementwise work out of a contraction that would repeat
it."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.fusion_barriers import insert_fusion_barriers


class InsertFusionBarriers(OwnPass, frozen=True):
    name = "aotc-insert-fusion-barriers"
    needs = ("aotc-fold-constants",)
    reason: str = (
        "chains of elementwise operations are fused; matmuls do not fuse what they would repeat"
    )

    def run(self, lowering: Lowering) -> None:
        insert_fusion_barriers(lowering.module)
