"""`aotc-expand-copies`: lowers copies to loops for which upstream would call a library function."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.rewrites.copies import expand_copies


class ExpandCopies(OwnPass, frozen=True):
    name = "aotc-expand-copies"
    reason: str = "copies that are not one memcpy become loops"

    def run(self, lowering: Lowering) -> None:
        expand_copies(lowering.module)
