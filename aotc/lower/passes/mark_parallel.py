"""`aotc-mark-parallel`: what the author wrote of parallel loops is noted."""

from __future__ import annotations

from aotc.lower.mapping.written import mark_parallel
from aotc.lower.passes.base import Lowering, OwnPass


class MarkParallel(OwnPass, frozen=True):
    name = "aotc-mark-parallel"
    reason: str = (
        "functions that say what runs in parallel keep their other loops as they are; blocks that "
        "loops ask for are noted"
    )

    def run(self, lowering: Lowering) -> None:
        mark_parallel(lowering.source)
