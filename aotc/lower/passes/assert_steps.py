"""`aotc-assert-steps`: asserts that dynamic steps of loops in host code are positive.

A loop with step 0 never ends. If it becomes a launch, the number of iterations is a division by 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotc import ops
from aotc.lower.checks.host_code import is_in_kernel
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

_NE, _SGT = 1, 4  # arith.cmpi's numbers


class AssertSteps(OwnPass, frozen=True):
    name = "aotc-assert-steps"
    reason: str = "a loop whose step is not positive is a failure"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for loop in ops.find(lowering.module.operation, "scf.for", "scf.parallel"):
                if is_in_kernel(loop):
                    continue
                for step in _unknown_steps(loop):
                    with loop.location, ir.InsertionPoint(loop):
                        predicate = _NE if "unsignedCmp" in loop.attributes else _SGT
                        is_positive = ops.compare(predicate, step, ops.constant(step.type, 0))
                        message = f"the step of this {loop.name} is positive"
                        ops.create_assert(is_positive, message)


def _unknown_steps(loop: Any) -> Iterator[Any]:
    steps = [loop.operands[2]] if loop.name == "scf.for" else ops.operand_groups(loop)[2]
    for step in steps:
        if not ops.is_constant(step):
            yield step
