"""`aotc-hold-apart`: elementwise work that a product would repeat is kept out of it."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.products import hold_apart


class HoldApart(OwnPass, frozen=True):
    name = "aotc-hold-apart"
    needs = ("aotc-fold-constants",)
    reason: str = (
        "chains of elementwise operations become one; products take in none that they would repeat"
    )

    def run(self, lowering: Lowering) -> None:
        hold_apart(lowering.module)
