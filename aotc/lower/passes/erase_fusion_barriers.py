"""`aotc-erase-fusion-barriers`: erases the barriers that `aotc-insert-fusion-barriers` inserted."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.fusion_barriers import erase_fusion_barriers


class EraseFusionBarriers(OwnPass, frozen=True):
    name = "aotc-erase-fusion-barriers"
    needs = ("aotc-insert-fusion-barriers", "linalg-fuse-elementwise-ops")
    reason: str = "fusion is done: its barriers are erased"

    def run(self, lowering: Lowering) -> None:
        erase_fusion_barriers(lowering.module)
