"""`aotc-fuse-quantized-pools`: maxima of dequantized tensors become maxima of bytes."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.quantized_pools import fuse_quantized_pools


class FuseQuantizedPools(OwnPass, frozen=True):
    """Runs when named operations are `linalg.generic`."""

    name = "aotc-fuse-quantized-pools"
    reason: str = "maxima of dequantized tensors become maxima of bytes, which are dequantized"

    def run(self, lowering: Lowering) -> None:
        fuse_quantized_pools(lowering.module)
