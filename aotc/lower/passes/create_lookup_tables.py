"""`aotc-create-lookup-tables`: expensive functions of one byte become table lookups."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.byte_tables import create_lookup_tables


class CreateLookupTables(OwnPass, frozen=True):
    """Runs after elementwise fusion, before bufferization."""

    name = "aotc-create-lookup-tables"
    reason: str = "functions of one byte, as between quantized layers, become table lookups"

    def run(self, lowering: Lowering) -> None:
        create_lookup_tables(lowering.module)
