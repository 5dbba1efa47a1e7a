"""`aotc-fuse-concatenations`: consumers of a concatenation compute its operands themselves."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.concatenations import fuse_concatenations


class FuseConcatenations(OwnPass, frozen=True):
    """Runs where transposes are `linalg.transpose`."""

    name = "aotc-fuse-concatenations"
    reason: str = "a concatenation that only elementwise operations read is not stored in memory"

    def run(self, lowering: Lowering) -> None:
        for location, text in fuse_concatenations(lowering.module):
            lowering.remarks.add(self.name, location, text)
