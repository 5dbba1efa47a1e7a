"""`aotc-expand-selects`: `arith.select` of a whole tensor of unknown sizes becomes `scf.if`.

Canonicalization makes such a select from an `scf.if` whose branches only yield. The two tensors may
have different sizes. `convert-elementwise-to-linalg` takes them for tensors of one size: the result
would have the wrong size, and elements behind the end of the smaller tensor would be read.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir


class ExpandSelects(OwnPass, frozen=True):
    """Runs just before elementwise operations become `linalg.generic`."""

    name = "aotc-expand-selects"
    reason: str = "a choice between tensors that may differ in size is no elementwise operation"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for select in ops.find(lowering.module.operation, "arith.select"):
                if _may_differ_in_size(select):
                    _expand(select)


def _may_differ_in_size(select: Any) -> bool:
    condition, type_ = select.operands[0].type, select.results[0].type
    is_whole = not isinstance(condition, ir.ShapedType)
    return is_whole and isinstance(type_, ir.RankedTensorType) and not type_.has_static_shape


def _expand(select: Any) -> None:
    condition, *choices = select.operands
    with select.location, ir.InsertionPoint(select):
        branch = ops.create("scf.if", [condition], [select.results[0].type], regions=2)
        for region, choice in zip(branch.regions, choices, strict=True):
            with ir.InsertionPoint(region.blocks.append()):
                ops.create("scf.yield", [choice])
    ops.replace(select, list(branch.results))
