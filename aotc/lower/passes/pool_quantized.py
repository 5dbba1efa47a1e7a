"""`aotc-pool-quantized`: maxima of dequantized tensors become maxima of bytes."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.quantized_pools import pool_quantized


class PoolQuantized(OwnPass, frozen=True):
    """Runs when named operations are `linalg.generic`."""

    name = "aotc-pool-quantized"
    reason: str = "maxima of dequantized tensors become maxima of bytes, which are dequantized"

    def run(self, lowering: Lowering) -> None:
        pool_quantized(lowering.module)
