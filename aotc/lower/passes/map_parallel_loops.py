"""`aotc-map-parallel-loops`: parallel loops of host functions become launches."""

from __future__ import annotations

from typing import ClassVar

from aotc.lower.mapping.loops import map_parallel_loops
from aotc.lower.outlining.device_functions import separate_device_functions
from aotc.lower.passes.base import Lowering, OwnPass, Parsers
from aotc.request import parse_block


class MapParallelLoops(OwnPass, frozen=True):
    """`block` is the size of all blocks; with None, a size is chosen for each loop."""

    name = "aotc-map-parallel-loops"
    needs = ("aotc-mark-explicit-parallelism", "convert-parallel-loops-to-gpu")
    parsers: ClassVar[Parsers] = {"block": parse_block}
    reason: str = "the remaining parallel loops become launches"
    block: tuple[int, ...] | None = None

    def run(self, lowering: Lowering) -> None:
        module = lowering.module
        map_parallel_loops(
            module,
            separate_device_functions(module),
            block=self.block,
            remarks=lowering.remarks,
            cpu_kernels=lowering.request.cpu_kernels,
        )
