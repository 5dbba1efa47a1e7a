"""`aotc-fold-constants`: evaluates linalg operations whose operands are all constants."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class FoldConstants(OwnPass, frozen=True):
    name = "aotc-fold-constants"
    needs = ("aotc-outline-attention",)
    reason: str = "linalg operations on constants alone are evaluated now"

    def run(self, lowering: Lowering) -> None:
        # NumPy takes longer to import than a small module takes to build.
        from aotc.lower.tensors.constants import fold_constants

        fold_constants(lowering.module)
