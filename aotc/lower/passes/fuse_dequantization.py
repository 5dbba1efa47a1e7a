"""`aotc-fuse-dequantization`: products of quantized weights compute them as they read them."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class FuseDequantization(OwnPass, frozen=True):
    name = "aotc-fuse-dequantization"
    needs = ("aotc-separate-fills",)
    reason: str = (
        "a product of a vector and quantized weights reads them packed: before what dequantizes "
        "them becomes a loop of its own"
    )

    def run(self, lowering: Lowering) -> None:
        # Modules without tensors need none of it.
        from aotc.kernels.matmul.dequantized.contraction import fuse_dequantization

        fuse_dequantization(lowering.module)
