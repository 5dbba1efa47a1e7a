"""`aotc-expand-copies`: copies become loops, where upstream would call a function."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.rewrites.copies import expand_copies


class ExpandCopies(OwnPass, frozen=True):
    name = "aotc-expand-copies"
    reason: str = "copies that are no memcpy become loops"

    def run(self, lowering: Lowering) -> None:
        expand_copies(lowering.module)
