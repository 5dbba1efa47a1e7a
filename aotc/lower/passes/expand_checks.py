"""`aotc-expand-checks`: lowers checks of elements to assertions, after loops became kernels."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.rewrites.checks import expand_checks


class ExpandChecks(OwnPass, frozen=True):
    name = "aotc-expand-checks"
    reason: str = "checks of elements become assertions, as loops are fused and are kernels by now"

    def run(self, lowering: Lowering) -> None:
        expand_checks(lowering.module)
