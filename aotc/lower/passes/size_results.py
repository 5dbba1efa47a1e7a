"""`aotc-size-results`: functions that compute the sizes of what entries return."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class SizeResults(OwnPass, frozen=True):
    name = "aotc-size-results"
    needs = ("aotc-check-sizes", "aotc-expand-reshapes", "aotc-simplify-sizes")
    reason: str = "callers may ask for the sizes of results before they call"

    def run(self, lowering: Lowering) -> None:
        # Modules without tensors need none of it.
        from aotc.lower.tensors.result_sizes import size_results

        size_results(lowering.module)
