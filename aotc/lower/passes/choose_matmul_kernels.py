"""`aotc-choose-matmul-kernels`: inserts kernel dispatch for matmuls and convolutions."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class ChooseMatmulKernels(OwnPass, frozen=True):
    name = "aotc-choose-matmul-kernels"
    needs = ("aotc-choose-attention-kernels",)
    reason: str = "matmuls get kernels of the library on GPUs; the loops remain as the fallback"

    def run(self, lowering: Lowering) -> None:
        # Modules without linalg do not need these imports.
        from aotc.kernels.matmul.dequantized.dispatch import choose_dequantized_kernels
        from aotc.kernels.matmul.dispatch import choose_matmul_kernels

        choose_dequantized_kernels(lowering.module, lowering.request, lowering.remarks)
        choose_matmul_kernels(lowering.module, lowering.request, lowering.remarks)
