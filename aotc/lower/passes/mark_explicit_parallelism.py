"""`aotc-mark-explicit-parallelism`: records which loops the module declares parallel."""

from __future__ import annotations

from aotc.lower.mapping.explicit_parallelism import mark_explicit_parallelism
from aotc.lower.passes.base import Lowering, OwnPass


class MarkExplicitParallelism(OwnPass, frozen=True):
    name = "aotc-mark-explicit-parallelism"
    reason: str = (
        "functions with explicit parallel loops keep their other loops sequential; block sizes "
        "that loops request are recorded"
    )

    def run(self, lowering: Lowering) -> None:
        mark_explicit_parallelism(lowering.source)
