"""`aotc-return-in-arguments`: results of known shape become output arguments."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.functions import return_in_arguments


class ReturnInArguments(OwnPass, frozen=True):
    name = "aotc-return-in-arguments"
    needs = ("aotc-mark-writable-tensors",)
    reason: str = "results of known shape become output arguments"

    def run(self, lowering: Lowering) -> None:
        return_in_arguments(lowering.source)
