"""`aotc-spell-kernels`: kernels get names that PTX can spell."""

from __future__ import annotations

from aotc.lower.outlining.module import spell_kernel_names
from aotc.lower.passes.base import Lowering, OwnPass


class SpellKernels(OwnPass, frozen=True):
    name = "aotc-spell-kernels"
    needs = ("aotc-merge-kernels",)
    reason: str = "kernels get names that PTX can spell"

    def run(self, lowering: Lowering) -> None:
        spell_kernel_names(lowering.module)
