"""`aotc-tabulate-bytes`: functions of bytes that take long are looked up."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.byte_tables import tabulate_bytes


class TabulateBytes(OwnPass, frozen=True):
    """Runs where elementwise operations are fused, before bufferization."""

    name = "aotc-tabulate-bytes"
    reason: str = "what is computed of one byte alone, as between quantized layers, is looked up"

    def run(self, lowering: Lowering) -> None:
        tabulate_bytes(lowering.module)
