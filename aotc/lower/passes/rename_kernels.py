"""`aotc-rename-kernels`: kernels get names that PTX can spell."""

from __future__ import annotations

from aotc.lower.outlining.module import rename_kernels
from aotc.lower.passes.base import Lowering, OwnPass


class RenameKernels(OwnPass, frozen=True):
    name = "aotc-rename-kernels"
    needs = ("aotc-merge-kernels",)
    reason: str = "kernels get names that assemblers can spell"

    def run(self, lowering: Lowering) -> None:
        rename_kernels(lowering.module)
