"""`aotc-parallelize-copies`: copies in host functions become parallel loops."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.rewrites.copies import parallelize_copies


class ParallelizeCopies(OwnPass, frozen=True):
    name = "aotc-parallelize-copies"
    needs = ("aotc-return-in-arguments",)
    reason: str = "kernels do the copies, as kernels use the data"

    def run(self, lowering: Lowering) -> None:
        parallelize_copies(lowering.module)
