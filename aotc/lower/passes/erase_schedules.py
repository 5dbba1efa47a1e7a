"""`aotc-erase-schedules`: the module's transform sequences are erased."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.schedules import erase_schedules


class EraseSchedules(OwnPass, frozen=True):
    name = "aotc-erase-schedules"
    needs = ("transform-interpreter",)
    reason: str = "schedules are no part of the program"

    def run(self, lowering: Lowering) -> None:
        erase_schedules(lowering.module)
