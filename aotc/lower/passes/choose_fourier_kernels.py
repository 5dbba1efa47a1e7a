"""`aotc-choose-fourier-kernels`: the functions of Fourier transforms launch kernels."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class ChooseFourierKernels(OwnPass, frozen=True):
    name = "aotc-choose-fourier-kernels"
    needs = ("aotc-choose-attention-kernels",)
    reason: str = "a Fourier transform is one kernel, with the row in shared memory"

    def run(self, lowering: Lowering) -> None:
        # Modules without linalg do not need this import.
        from aotc.kernels.fourier.dispatch import choose_fourier_kernels

        choose_fourier_kernels(lowering.module, lowering.request, lowering.remarks)
