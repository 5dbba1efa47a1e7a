"""`aotc-merge-kernels`: merges outlined kernels into few `gpu.module`s."""

from __future__ import annotations

from aotc.emit.c_text import c_identifier
from aotc.lower.outlining.module import merge_outlined
from aotc.lower.passes.base import Lowering, OwnPass


class MergeKernels(OwnPass, frozen=True):
    name = "aotc-merge-kernels"
    needs = ("gpu-kernel-outlining",)
    reason: str = "kernels of loops share one image; so do the library kernels of one operation"

    def run(self, lowering: Lowering) -> None:
        lowering.restore_library_kernels()
        name = f"{c_identifier(lowering.request.name)}_kernels"
        by_hand, debug = set(lowering.by_hand), lowering.request.debug
        merge_outlined(lowering.module, by_hand, name, debug=debug)
