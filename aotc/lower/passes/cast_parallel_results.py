"""`aotc-cast-parallel-results`: passes results of parallel loops through a cast to their own type.

The integer range analysis does not model the results of `scf.forall` and `scf.parallel` (seen in
LLVM 24). For a loop with such a result, it takes the initial value as the only value, and replaces
the result by that constant. The analysis knows nothing about a cast, so the result of the cast may
be any value.
"""

from __future__ import annotations

from aotc import ops
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

_CAST = "builtin.unrealized_conversion_cast"


class CastParallelResults(OwnPass, frozen=True):
    """Runs before integer ranges are used. Canonicalization removes the casts."""

    name = "aotc-cast-parallel-results"
    reason: str = "range analysis would take results of parallel loops for their initial values"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for loop in ops.find(lowering.module.operation, "scf.forall", "scf.parallel"):
                for result in loop.results:
                    with loop.location, ir.InsertionPoint.after(loop):
                        cast = ops.create(_CAST, [result], [result.type])
                    result.replace_all_uses_except(cast.results[0], cast)
