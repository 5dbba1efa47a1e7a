"""`aotc-place-memory`: puts the buffers of kernels into memory that the GPU can access."""

from __future__ import annotations

from typing import ClassVar

from aotc.errors import InputError
from aotc.lower.passes.base import Lowering, OwnPass, Parsers
from aotc.lower.placement import place_memory
from aotc.request import MemoryMode


def _parse_mode(word: str) -> MemoryMode:
    modes = {mode.value: mode for mode in MemoryMode}
    if word not in modes:
        raise InputError(f"aotc-place-memory: memory={word} is none of {', '.join(modes)}.")
    return modes[word]


class PlaceMemory(OwnPass, frozen=True):
    name = "aotc-place-memory"
    needs = ("aotc-merge-kernels", "aotc-expand-copies")
    parsers: ClassVar[Parsers] = {"memory": _parse_mode}
    reason: str = "the buffers of kernels are put into memory that the GPU can access"
    memory: MemoryMode = MemoryMode.AUTO

    def run(self, lowering: Lowering) -> None:
        lowering.managed_globals = place_memory(lowering.module, self.memory, lowering.remarks)
