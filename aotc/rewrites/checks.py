"""Checks of elements: values whose condition must hold, or the launch fails with a message.

A `cf.assert` in a loop keeps it from being fused with others, and from being vectorized. So until
loops are kernels, a check is an `arith.select` with the attribute `CHECK`, which is pure: its
operands are the condition, the value, and one that is safe to compute with.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.effects import is_division, is_pure
from aotc.mlir import ir

CHECK = "aotc.check"


def create_check(condition: Any, value: Any, otherwise: Any, message: Any) -> Any:
    """`value`, of which `condition` is asserted. `message` is a StringAttr of the bindings that the
    operands are of."""
    operands = [condition, value, otherwise]
    return ops.create("arith.select", operands, [value.type], {CHECK: message}).result


def expand_checks(module: Any) -> None:
    """Puts assertions before what uses the checks, which become selections as any other.

    A check that does not change in a loop was moved out of it. What it is for stands in the loop,
    which may have no iteration: there it is asserted.
    """
    with module.context:
        for select in ops.find(module.operation, "arith.select"):
            if CHECK not in select.attributes:
                continue
            message = {"msg": select.attributes[CHECK]}
            del select.attributes[CHECK]
            for place in _places(select):
                with select.location, ir.InsertionPoint(place):
                    condition = _as_one(select.operands[0])
                    ops.create("cf.assert", [condition], attributes=message)


def _places(select: Any) -> list[Any]:
    """It itself, if an operation of its block needs it that is not pure; else the first operation
    of each block that does."""
    found: dict[Any, Any] = {}
    waiting, seen = [select], {select}
    while waiting:
        operation = waiting.pop()
        for use in (use for result in operation.results for use in result.uses):
            user = use.owner.operation
            if user.block != select.block:
                before = found.setdefault(user.block, user)
                if user.is_before_in_block(before):
                    found[user.block] = user
            elif not is_pure(user) or is_division(user):
                return [select]
            elif user not in seen:
                seen.add(user)
                waiting.append(user)
    return list(found.values())


def _as_one(condition: Any) -> Any:
    """Of a vector: whether all of it is true."""
    if not isinstance(condition.type, ir.VectorType):
        return condition
    kind = {"kind": ir.Attribute.parse("#vector.kind<and>")}
    return ops.create("vector.reduction", [condition], [ops.integer(1)], kind).result
