"""`aotc-fold-constants`: what is computed from constants alone becomes a constant."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class FoldConstants(OwnPass, frozen=True):
    name = "aotc-fold-constants"
    needs = ("aotc-outline-attention",)
    reason: str = "what linalg computes from constants alone is computed now"

    def run(self, lowering: Lowering) -> None:
        # It computes by NumPy, which takes longer to import than small modules to build.
        from aotc.lower.tensors.constants import fold_constants

        fold_constants(lowering.module)
