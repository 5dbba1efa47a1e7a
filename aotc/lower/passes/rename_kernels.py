"""`aotc-rename-kernels`: renames kernels to valid PTX identifiers."""

from __future__ import annotations

from aotc.lower.outlining.module import rename_kernels
from aotc.lower.passes.base import Lowering, OwnPass


class RenameKernels(OwnPass, frozen=True):
    name = "aotc-rename-kernels"
    needs = ("aotc-merge-kernels",)
    reason: str = "kernels get names that assemblers accept"

    def run(self, lowering: Lowering) -> None:
        rename_kernels(lowering.module)
