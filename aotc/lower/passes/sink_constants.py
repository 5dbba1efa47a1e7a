"""`aotc-sink-constants`: each launch gets its own copies of a function's constants.

`gpu-launch-sink-index-computations` does this, too, but it goes over all uses of a constant for
each launch that uses it: for models with hundreds of launches it took a fifth of a build.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir


class SinkConstants(OwnPass, frozen=True):
    name = "aotc-sink-constants"
    reason: str = "kernels contain the constants that they use"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for function in ops.find(lowering.module.operation, "func.func"):
                # Canonicalization has moved constants into the entry block.
                for block in list(function.regions[0].blocks)[:1]:
                    # Copies are inserted at the start of a launch, in the order of the originals.
                    for operation in reversed(list(block.operations)):
                        if operation.operation.name == "arith.constant":
                            _sink(operation.operation)


def _sink(constant: Any) -> None:
    copies: dict[Any, Any] = {}
    for use in list(constant.results[0].uses):
        user = use.owner.operation
        launch = ops.enclosing(user, "gpu.launch")
        if launch is None:
            continue
        if launch not in copies:
            start = ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0])
            copies[launch] = constant.clone(start).operation.results[0]
        user.operands[use.operand_number] = copies[launch]
