"""The parallel loops of functions that do not say themselves which are."""

from __future__ import annotations

from aotc import ops
from aotc.analysis.aliasing import Roots, some_loops_kept_sequential
from aotc.analysis.functions import Functions
from aotc.input.entries import functions_of
from aotc.lower.mapping.written import is_sequential, says_what_is_parallel
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import PassManager

# Loops that step by constants, and what they load and store, become affine ones.
_RAISING = ("raise-scf-to-affine", "affine-raise-from-memref")


class ParallelizeLoops(OwnPass, frozen=True):
    name = "aotc-parallelize-loops"
    needs = ("aotc-mark-parallel",)
    reason: str = "loops that say nothing of it are parallel where they can be"

    def run(self, lowering: Lowering) -> None:
        module = lowering.module
        with module.context:
            roots = Roots(Functions(module))
            for function in functions_of(module):
                operations = ops.walk(function)
                says_so = is_sequential(function) or any(map(says_what_is_parallel, operations))
                if function.name != "func.func" or says_so:
                    continue
                # Raised, an unsigned loop would be a signed one.
                loops = [op for op in operations if op.name == "scf.for"]
                if loops and not any("unsignedCmp" in loop.attributes for loop in loops):
                    PassManager.parse(f"func.func({','.join(_RAISING)})").run(function)
                with some_loops_kept_sequential(function, roots):
                    PassManager.parse("func.func(affine-parallelize)").run(function)
