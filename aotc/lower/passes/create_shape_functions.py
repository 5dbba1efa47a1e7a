"""`aotc-create-shape-functions`: functions that compute the shapes of entries' results."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass


class CreateShapeFunctions(OwnPass, frozen=True):
    name = "aotc-create-shape-functions"
    needs = ("aotc-check-sizes", "aotc-expand-reshapes", "aotc-simplify-sizes")
    reason: str = "callers can query the sizes of results before the call"

    def run(self, lowering: Lowering) -> None:
        # Modules without tensors do not need this import.
        from aotc.lower.tensors.result_sizes import size_results

        size_results(lowering.module)
