"""`aotc-mark-parallel`: records which loops the author of the module declared parallel."""

from __future__ import annotations

from aotc.lower.mapping.explicit_parallelism import mark_parallel
from aotc.lower.passes.base import Lowering, OwnPass


class MarkParallel(OwnPass, frozen=True):
    name = "aotc-mark-parallel"
    reason: str = (
        "functions with explicit parallel loops keep their other loops sequential; block sizes "
        "that loops request are recorded"
    )

    def run(self, lowering: Lowering) -> None:
        mark_parallel(lowering.source)
