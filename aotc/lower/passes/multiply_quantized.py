"""`aotc-multiply-quantized`: matmuls of dequantized tensors become integer matmuls."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.quantized_matmuls import multiply_quantized


class MultiplyQuantized(OwnPass, frozen=True):
    """Runs when named operations are `linalg.generic`."""

    name = "aotc-multiply-quantized"
    reason: str = "matmuls of dequantized tensors multiply the integers, and scale the result"

    def run(self, lowering: Lowering) -> None:
        multiply_quantized(lowering.module)
