"""Vectors are computed in the kernels that use them, rather than passed as arguments.

Loop-invariant code motion took them out of the loop that is a launch now; as an argument a
vector costs parameter space, and one of i1 is not passed right at all.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

# Computed from their operands alone.
_PURE_DIALECTS = ("vector", "arith", "math")


class SinkVectors(OwnPass, frozen=True):
    name = "aotc-sink-vectors"
    reason: str = "vectors are computed in kernels rather than handed to them"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for launch in ops.find(lowering.module.operation, "gpu.launch"):
                pending = ops.walk(launch)[1:]
                while pending:
                    user = pending.pop()
                    for i, operand in enumerate(user.operands):
                        producer = ops.defining(operand)
                        if not isinstance(operand.type, ir.VectorType) or producer is None:
                            continue
                        if launch in ops.ancestors(producer) or not _is_pure(producer):
                            continue
                        # One for each use: what is the same is found to be so in the kernel.
                        copy = producer.clone(ir.InsertionPoint(user)).operation
                        user.operands[i] = copy.results[list(producer.results).index(operand)]
                        pending.append(copy)


def _is_pure(operation: Any) -> bool:
    dialect = operation.name.split(".")[0]
    reads = operation.name in ("vector.load", "vector.transfer_read", "vector.gather")
    return dialect in _PURE_DIALECTS and len(operation.regions) == 0 and not reads
