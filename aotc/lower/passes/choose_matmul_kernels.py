"""`aotc-choose-matmul-kernels`: matmuls and convolutions get a dispatch to their kernels."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class ChooseMatmulKernels(OwnPass, frozen=True):
    name = "aotc-choose-matmul-kernels"
    needs = ("aotc-choose-attention-kernels",)
    reason: str = "matmuls have kernels of their own on GPUs, beside the loops"

    def run(self, lowering: Lowering) -> None:
        # Modules without linalg need none of it.
        from aotc.kernels.matmul.dequantized.dispatch import choose_dequantized_kernels
        from aotc.kernels.matmul.dispatch import choose_matmul_kernels

        choose_dequantized_kernels(lowering.module, lowering.request, lowering.remarks)
        choose_matmul_kernels(lowering.module, lowering.request, lowering.remarks)
