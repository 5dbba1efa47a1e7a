"""`aotc-outline-attention`: the operations of an attention become a function of their own."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class OutlineAttention(OwnPass, frozen=True):
    name = "aotc-outline-attention"
    needs = ("aotc-separate-fills",)
    reason: str = (
        "attention is one function, in front of which a kernel can be called: while its "
        "operations are as they were written, and before its mask is a constant of its size"
    )

    def run(self, lowering: Lowering) -> None:
        # Modules without tensors need none of it.
        from aotc.kernels.attention.outline import outline_attention

        outline_attention(lowering.module, lowering.request)
