"""`aotc-let-go`: what `aotc-hold-apart` put in is erased."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.products import let_go


class LetGo(OwnPass, frozen=True):
    name = "aotc-let-go"
    needs = ("aotc-hold-apart", "linalg-fuse-elementwise-ops")
    reason: str = "fusion is done: nothing need be held apart any more"

    def run(self, lowering: Lowering) -> None:
        let_go(lowering.module)
