"""`aotc-cast-parallel-results`: results of parallel loops pass through a cast to their own type.

The integer range analysis does not see what gives `scf.forall` and `scf.parallel` their results
(seen in LLVM 24). Where a loop carries one, it takes the initial value for the only one, and the
loop's result becomes that constant. Of a cast it knows nothing, so that its result has any value.
"""

from __future__ import annotations

from aotc import ops
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

_CAST = "builtin.unrealized_conversion_cast"


class CastParallelResults(OwnPass, frozen=True):
    """Runs before the ranges of integers are used. Canonicalization removes the casts."""

    name = "aotc-cast-parallel-results"
    reason: str = "results of parallel loops are not taken for what they begin with"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for loop in ops.find(lowering.module.operation, "scf.forall", "scf.parallel"):
                for result in loop.results:
                    with loop.location, ir.InsertionPoint.after(loop):
                        cast = ops.create(_CAST, [result], [result.type])
                    result.replace_all_uses_except(cast.results[0], cast)
