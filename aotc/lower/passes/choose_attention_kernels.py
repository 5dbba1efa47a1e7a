"""`aotc-choose-attention-kernels`: inserts kernel dispatch into the functions of attention."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class ChooseAttentionKernels(OwnPass, frozen=True):
    name = "aotc-choose-attention-kernels"
    needs = ("aotc-outline-attention",)
    reason: str = "attention has a kernel of its own on some GPUs"

    def run(self, lowering: Lowering) -> None:
        # Modules without linalg do not need this import.
        from aotc.kernels.attention.dispatch import choose_attention_kernels

        choose_attention_kernels(lowering.module, lowering.request, lowering.remarks)
