"""`aotc-sink-vectors`: vectors are computed in the kernels that use them instead of passed as
arguments.

Loop-invariant code motion moved them out of a loop that is a launch now. As an argument, a vector
uses parameter space, and a vector of i1 is not passed correctly.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

# Dialects whose operations depend on their operands alone.
_PURE_DIALECTS = ("vector", "arith", "math")


class SinkVectors(OwnPass, frozen=True):
    name = "aotc-sink-vectors"
    reason: str = "vectors are computed in kernels rather than passed as arguments"

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
                        # Each use gets its own copy; CSE in the kernel removes duplicates.
                        copy = producer.clone(ir.InsertionPoint(user)).operation
                        user.operands[i] = copy.results[list(producer.results).index(operand)]
                        pending.append(copy)


def _is_pure(operation: Any) -> bool:
    dialect = operation.name.split(".")[0]
    reads = operation.name in ("vector.load", "vector.transfer_read", "vector.gather")
    return dialect in _PURE_DIALECTS and len(operation.regions) == 0 and not reads
