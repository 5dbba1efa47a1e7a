"""`aotc-choose-product-kernels`: matmuls and convolutions get a dispatch to their kernels."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class ChooseProductKernels(OwnPass, frozen=True):
    name = "aotc-choose-product-kernels"
    needs = ("aotc-choose-attention-kernels",)
    reason: str = "products of matrices have kernels of their own on GPUs, beside the loops"

    def run(self, lowering: Lowering) -> None:
        # Modules without linalg need none of it.
        from aotc.kernels.matmul.dispatch import choose_product_kernels

        choose_product_kernels(lowering.module, lowering.request, lowering.remarks)
