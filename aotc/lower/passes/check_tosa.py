"""`aotc-check-tosa`: asserts sizes of operations of TOSA whose lowering does not compare them.

`tosa.concat` becomes `tensor.concat`, whose sizes `aotc-check-sizes` asserts: MLIR would insert its
operands into a tensor that has the sizes of the first one, and leave out elements.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

_EQ = 0
# The operands of tosa.scatter: [N, K, C], [N, W] and [N, W, C].
_DIMENSIONS = ("NKC", "NW", "NWC")


class CheckTosa(OwnPass, frozen=True):
    """Runs when types have the sizes that TOSA's inference of shapes finds."""

    name = "aotc-check-tosa"
    reason: str = "sizes of operands that MLIR's lowering does not compare are asserted"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for concat in ops.find(lowering.module.operation, "tosa.concat"):
                _replace(concat)
            for scatter in ops.find(lowering.module.operation, "tosa.scatter"):
                _check(scatter)


def _replace(concat: Any) -> None:
    along = ir.IntegerAttr(concat.attributes["axis"]).value
    dim = {"dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), along)}
    with concat.location, ir.InsertionPoint(concat):
        made = ops.create("tensor.concat", concat.operands, [concat.results[0].type], dim)
    ops.replace(concat, made.results)


def _check(scatter: Any) -> None:
    first: dict[str, tuple[Any, int]] = {}
    with scatter.location, ir.InsertionPoint(scatter):
        for operand, letters in zip(scatter.operands, _DIMENSIONS, strict=True):
            for dimension, letter in enumerate(letters):
                other, place = first.setdefault(letter, (operand, dimension))
                is_open = operand.type.is_dynamic_dim(dimension) or other.type.is_dynamic_dim(place)
                if other != operand and is_open:
                    sizes = ops.size(other, place), ops.size(operand, dimension)
                    message = f"tosa.scatter: operands have different sizes of {letter}"
                    ops.create_assert(ops.compare(_EQ, *sizes), message)
