"""`aotc-join-matmuls`: matmuls of the same rows and constant weights become one."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class JoinMatmuls(OwnPass, frozen=True):
    """Runs where attention has been outlined: what it reads may be slices."""

    name = "aotc-join-matmuls"
    needs = ("aotc-outline-attention",)
    reason: str = "matmuls of the same rows are one where that is expected to be faster"

    def run(self, lowering: Lowering) -> None:
        # Modules without tensors need none of it.
        from aotc.kernels.matmul.joining import is_faster
        from aotc.lower.tensors.joined_matmuls import join_matmuls

        request = lowering.request
        for location, text in join_matmuls(lowering.module, lambda join: is_faster(join, request)):
            lowering.remarks.add(self.name, location, text)
