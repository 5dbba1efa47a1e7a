"""`aotc-tabulate-bytes`: expensive functions of one byte become table lookups."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.byte_tables import tabulate_bytes


class TabulateBytes(OwnPass, frozen=True):
    """Runs after elementwise fusion, before bufferization."""

    name = "aotc-tabulate-bytes"
    reason: str = "functions of one byte, as between quantized layers, become table lookups"

    def run(self, lowering: Lowering) -> None:
        tabulate_bytes(lowering.module)
