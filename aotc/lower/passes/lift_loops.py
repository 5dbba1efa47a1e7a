"""`aotc-lift-loops`: loops of blocks become `scf.while`, in a module with tensors.

The deallocation of buffers takes no cycle of blocks. Upstream's `lift-cf-to-scf` makes structured
loops of them. A value that one way out of a loop does not have becomes `ub.poison`, which does not
bufferize if it is a tensor: then it becomes an empty tensor, which nothing reads.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir
from aotc.rewrites.run import run_passes


class LiftLoops(OwnPass, frozen=True):
    """Runs before all passes that transform tensors."""

    name = "aotc-lift-loops"
    reason: str = "loops of blocks become scf.while, whose tensors bufferize"

    def run(self, lowering: Lowering) -> None:
        module, source = lowering.module, lowering.source
        functions = ops.find(module.operation, "func.func")
        inside = [operation for function in functions for operation in ops.walk(function)]
        if not any(_is_cyclic(region) for operation in inside for region in operation.regions):
            return
        # The first pass erases blocks that nothing reaches, which the other one does not take.
        run_passes(module, ("canonicalize", "lift-cf-to-scf"), name=source.name, lines=source.lines)
        with module.context:
            for poison in ops.find(module.operation, "ub.poison"):
                type_ = poison.results[0].type
                if isinstance(type_, ir.RankedTensorType):
                    _replace(poison, type_)


def _is_cyclic(region: Any) -> bool:
    """Whether a block of the region can reach itself."""
    blocks = list(region.blocks)
    after = [{blocks.index(one) for one in block.successors} for block in blocks]
    left = set(range(len(blocks)))
    # A block that only leads to blocks that are on no cycle is on none, either.
    while done := {i for i in left if left.isdisjoint(after[i])}:
        left -= done
    return bool(left)


def _replace(poison: Any, type_: Any) -> None:
    with poison.location, ir.InsertionPoint(poison):
        sizes = [ops.constant_index(0) for i in range(type_.rank) if type_.is_dynamic_dim(i)]
        ops.replace(poison, [ops.create("tensor.empty", sizes, [type_]).result])
