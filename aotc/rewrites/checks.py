"""Checks of elements: values whose condition must hold, or the launch fails with a message.

A `cf.assert` in a loop keeps it from being fused with others, and from being vectorized. So until
loops are kernels, a check is an `arith.select` with the attribute `CHECK`, which is pure: its
operands are the condition, the value, and one that is safe to compute with.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir

CHECK = "aotc.check"


def create_check(condition: Any, value: Any, otherwise: Any, message: Any) -> Any:
    """`value`, of which `condition` is asserted. `message` is a StringAttr of the bindings that the
    operands are of."""
    operands = [condition, value, otherwise]
    return ops.create("arith.select", operands, [value.type], {CHECK: message}).result


def expand_checks(module: Any) -> None:
    """Puts assertions before the checks, which become selections as any other."""
    with module.context:
        for select in ops.find(module.operation, "arith.select"):
            if CHECK in select.attributes:
                with select.location, ir.InsertionPoint(select):
                    message = {"msg": select.attributes[CHECK]}
                    ops.create("cf.assert", [_as_one(select.operands[0])], attributes=message)
                del select.attributes[CHECK]


def _as_one(condition: Any) -> Any:
    """Of a vector: whether all of it is true."""
    if not isinstance(condition.type, ir.VectorType):
        return condition
    kind = {"kind": ir.Attribute.parse("#vector.kind<and>")}
    return ops.create("vector.reduction", [condition], [ops.integer(1)], kind).result
