"""`aotc-erase-schedules`: erases the module's transform sequences."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.schedules import erase_schedules


class EraseSchedules(OwnPass, frozen=True):
    name = "aotc-erase-schedules"
    needs = ("transform-interpreter",)
    reason: str = "transform schedules are not part of the program"

    def run(self, lowering: Lowering) -> None:
        erase_schedules(lowering.module)
