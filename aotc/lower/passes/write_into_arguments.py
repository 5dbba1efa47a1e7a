"""`aotc-write-into-arguments`: results that are new values of arguments are written into them."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.in_place import write_into_arguments


class WriteIntoArguments(OwnPass, frozen=True):
    name = "aotc-write-into-arguments"
    needs = ("aotc-mark-writable-tensors",)
    reason: str = "a result that is the new value of an argument is written into it"

    def run(self, lowering: Lowering) -> None:
        write_into_arguments(lowering.module)
