"""`aotc-mark-writable-tensors`: tells bufferization which tensors belong to the caller."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.functions import mark_writable_tensors


class MarkWritableTensors(OwnPass, frozen=True):
    name = "aotc-mark-writable-tensors"
    reason: str = (
        "tensor arguments of entries belong to the caller and are only read; returned tensors are "
        "recorded"
    )

    def run(self, lowering: Lowering) -> None:
        mark_writable_tensors(lowering.module)
