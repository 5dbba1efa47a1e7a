"""`aotc-join-matmuls`: matmuls with the same left-hand side and constant weights become one."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class JoinMatmuls(OwnPass, frozen=True):
    """Runs after attention is outlined: the operands of attention may be slices."""

    name = "aotc-join-matmuls"
    needs = ("aotc-outline-attention",)
    reason: str = "matmuls with the same left-hand side become one if that is expected to be faster"

    def run(self, lowering: Lowering) -> None:
        # Modules without tensors do not need these imports.
        from aotc.kernels.matmul.joining import is_faster
        from aotc.lower.tensors.joined_matmuls import join_matmuls

        request = lowering.request
        for location, text in join_matmuls(lowering.module, lambda join: is_faster(join, request)):
            lowering.remarks.add(self.name, location, text)
