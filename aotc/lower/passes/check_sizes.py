"""`aotc-check-sizes`: proves what operations require of sizes, or checks it at run time."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class CheckSizes(OwnPass, frozen=True):
    name = "aotc-check-sizes"
    reason: str = "what operations require of sizes is proven, or checked when the entry is called"

    def run(self, lowering: Lowering) -> None:
        # Modules without tensors do not need this import.
        from aotc.lower.tensors.size_checks import check_sizes

        check_sizes(lowering.source)
