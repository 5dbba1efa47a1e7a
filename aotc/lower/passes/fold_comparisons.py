"""`aotc-fold-comparisons`: comparisons of integers that their ranges determine are constants."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.known_comparisons import fold_comparisons


class FoldComparisons(OwnPass, frozen=True):
    """Runs where elementwise operations are fused, so that an index is computed where it is
    compared."""

    name = "aotc-fold-comparisons"
    reason: str = "indices from constant tables are in bounds if all elements of the table are"

    def run(self, lowering: Lowering) -> None:
        fold_comparisons(lowering.module)
