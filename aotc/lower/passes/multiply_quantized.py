"""`aotc-multiply-quantized`: products of dequantized tensors are products of integers."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.quantized_products import multiply_quantized


class MultiplyQuantized(OwnPass, frozen=True):
    """Runs where named operations are `linalg.generic`."""

    name = "aotc-multiply-quantized"
    reason: str = "products of dequantized tensors are of their integers, and scaled afterwards"

    def run(self, lowering: Lowering) -> None:
        multiply_quantized(lowering.module)
