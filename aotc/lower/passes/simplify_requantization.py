"""`aotc-simplify-requantization`: sums of integers become bytes by one product with a scale."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.requantization import simplify_requantization


class SimplifyRequantization(OwnPass, frozen=True):
    """Runs where elementwise operations are fused, before bufferization."""

    name = "aotc-simplify-requantization"
    reason: str = "sums of integers are multiplied by a quotient of scales, instead of divided"

    def run(self, lowering: Lowering) -> None:
        simplify_requantization(lowering.module)
