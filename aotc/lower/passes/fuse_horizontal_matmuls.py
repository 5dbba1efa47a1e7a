"""`aotc-fuse-horizontal-matmuls`: matmuls of one left-hand side and constant weights become one."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class FuseHorizontalMatmuls(OwnPass, frozen=True):
    """Runs after attention is outlined: the operands of attention may be slices."""

    name = "aotc-fuse-horizontal-matmuls"
    needs = ("aotc-outline-attention",)
    reason: str = "matmuls with the same left-hand side become one if that is expected to be faster"

    def run(self, lowering: Lowering) -> None:
        # Modules without tensors do not need these imports.
        from aotc.kernels.matmul.horizontal_fusion import is_faster
        from aotc.lower.tensors.horizontal_matmuls import fuse_horizontal_matmuls

        request = lowering.request
        made = fuse_horizontal_matmuls(lowering.module, lambda fusion: is_faster(fusion, request))
        for location, text in made:
            lowering.remarks.add(self.name, location, text)
