"""`aotc-fuse-quantized-matmuls`: matmuls of dequantized tensors become integer matmuls."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.quantized_matmuls import fuse_quantized_matmuls


class FuseQuantizedMatmuls(OwnPass, frozen=True):
    """Runs when named operations are `linalg.generic`."""

    name = "aotc-fuse-quantized-matmuls"
    reason: str = "matmuls of dequantized tensors multiply the integers, and scale the result"

    def run(self, lowering: Lowering) -> None:
        fuse_quantized_matmuls(lowering.module)
