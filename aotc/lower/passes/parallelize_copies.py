"""`aotc-parallelize-copies`: copies of host functions become parallel loops."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.rewrites.copies import parallelize_copies


class ParallelizeCopies(OwnPass, frozen=True):
    name = "aotc-parallelize-copies"
    needs = ("aotc-return-in-arguments",)
    reason: str = "what is copied is copied by kernels, as it is they that use it"

    def run(self, lowering: Lowering) -> None:
        parallelize_copies(lowering.module)
