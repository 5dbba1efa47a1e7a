"""`aotc-outline-attention`: outlines the operations of each attention into a function."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class OutlineAttention(OwnPass, frozen=True):
    name = "aotc-outline-attention"
    needs = ("aotc-clone-fills",)
    reason: str = (
        "attention becomes one function, for which a kernel can be called: while its operations "
        "are as they were written, and before its mask is folded into a constant"
    )

    def run(self, lowering: Lowering) -> None:
        # Modules without tensors do not need this import.
        from aotc.kernels.attention.outline import outline_attention

        outline_attention(lowering.module, lowering.request)
