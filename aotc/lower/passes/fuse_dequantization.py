"""`aotc-fuse-dequantization`: matmuls with quantized weights dequantize them as they load them."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class FuseDequantization(OwnPass, frozen=True):
    name = "aotc-fuse-dequantization"
    needs = ("aotc-clone-fills",)
    reason: str = (
        "a product of a vector and quantized weights loads them packed: before dequantization "
        "becomes a separate loop"
    )

    def run(self, lowering: Lowering) -> None:
        # Modules without tensors do not need this import.
        from aotc.kernels.matmul.dequantized.contraction import fuse_dequantization

        fuse_dequantization(lowering.module)
