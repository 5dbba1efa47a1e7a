"""`aotc-check-sizes`: what operations expect of sizes is proven, or checked at run time."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class CheckSizes(OwnPass, frozen=True):
    name = "aotc-check-sizes"
    reason: str = "what operations expect of sizes is proven, or checked when the entry is called"

    def run(self, lowering: Lowering) -> None:
        # Modules without tensors need none of it.
        from aotc.lower.tensors.size_checks import check_sizes

        check_sizes(lowering.source)
