"""`aotc-expand-checks`: checks of elements become assertions, now that loops are kernels."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.rewrites.checks import expand_checks


class ExpandChecks(OwnPass, frozen=True):
    name = "aotc-expand-checks"
    reason: str = "what is checked of elements is asserted: loops are fused and kernels by now"

    def run(self, lowering: Lowering) -> None:
        expand_checks(lowering.module)
