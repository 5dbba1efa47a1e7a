"""`aotc-parallelize-loops`: makes loops parallel in functions without explicit parallel loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotc import ops
from aotc.analysis.aliasing import Roots, some_loops_kept_sequential
from aotc.analysis.functions import Functions
from aotc.input.entries import functions_of
from aotc.lower.mapping.explicit_parallelism import is_explicitly_parallel, is_sequential
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import PassManager

# Loops with constant steps, and their loads and stores, become affine.
_RAISING = ("raise-scf-to-affine", "affine-raise-from-memref")


class ParallelizeLoops(OwnPass, frozen=True):
    name = "aotc-parallelize-loops"
    needs = ("aotc-mark-explicit-parallelism",)
    reason: str = "loops become parallel if no two iterations access the same element"

    def run(self, lowering: Lowering) -> None:
        module = lowering.module
        with module.context:
            roots = Roots(Functions(module))
            for function in functions_without_parallel_loops(module):
                raise_to_affine(function)
                make_parallel(function, roots)


def functions_without_parallel_loops(module: Any) -> Iterator[Any]:
    """Yields the functions without explicit parallel loops. Reductions of other functions keep the
    order of the source."""
    for function in functions_of(module):
        is_explicit = is_sequential(function) or any(
            map(is_explicitly_parallel, ops.walk(function))
        )
        if function.name == "func.func" and not is_explicit:
            yield function


def raise_to_affine(function: Any) -> bool:
    """Raises the `scf.for` loops of the function, and their accesses, to affine where possible.

    Returns False, and raises nothing, if one of them is unsigned: the affine loop would be signed.
    """
    loops = ops.find(function, "scf.for")
    if any("unsignedCmp" in loop.attributes for loop in loops):
        return False
    if loops:
        PassManager.parse(f"func.func({','.join(_RAISING)})").run(function)
    return True


def make_parallel(function: Any, roots: Roots) -> None:
    """Makes affine loops parallel if no two iterations access the same element."""
    with some_loops_kept_sequential(function, roots):
        PassManager.parse("func.func(affine-parallelize)").run(function)
