"""`aotc-fuse-concatenations`: pieces are computed by what reads them together."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.concatenations import fuse_concatenations


class FuseConcatenations(OwnPass, frozen=True):
    """Runs where transposes are `linalg.transpose`."""

    name = "aotc-fuse-concatenations"
    reason: str = "what only elementwise operations read is not put together in memory before"

    def run(self, lowering: Lowering) -> None:
        for location, text in fuse_concatenations(lowering.module):
            lowering.remarks.add(self.name, location, text)
