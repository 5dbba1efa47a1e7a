"""Checks of elements: a launch fails with a message if the condition of a checked value is false.

A `cf.assert` in a loop prevents fusion with other loops, and vectorization. So until loops become
kernels, a check is an `arith.select` with the attribute `CHECK`, which is pure. Its operands are
the condition, the value, and a value that is safe to compute with.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.effects import is_division, is_pure
from aotc.attributes import CHECK_ATTRIBUTE
from aotc.mlir import ir


def create_check(condition: Any, value: Any, otherwise: Any, message: Any) -> Any:
    """`value`, with a check that `condition` holds. `message` is a StringAttr of the operands'
    context."""
    operands = [condition, value, otherwise]
    return ops.create("arith.select", operands, [value.type], {CHECK_ATTRIBUTE: message}).result


def expand_checks(module: Any) -> None:
    """Inserts assertions before the uses of the checks, which become ordinary selections.

    A check that is invariant in a loop was hoisted out of it. Its users are in the loop, which may
    have no iteration, so the assertion is inserted there.
    """
    with module.context:
        for select in ops.find(module.operation, "arith.select"):
            if CHECK_ATTRIBUTE not in select.attributes:
                continue
            message = {"msg": select.attributes[CHECK_ATTRIBUTE]}
            del select.attributes[CHECK_ATTRIBUTE]
            for place in _places(select):
                with select.location, ir.InsertionPoint(place):
                    condition = _as_one(select.operands[0])
                    ops.create("cf.assert", [condition], attributes=message)


def _places(select: Any) -> list[Any]:
    """The operations before which a check is asserted: the check itself, if an operation that
    is not pure in its own block needs it; otherwise the first user in each other block."""
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
    """The condition as an i1: for a vector, whether all its elements are true."""
    if not isinstance(condition.type, ir.VectorType):
        return condition
    kind = {"kind": ir.Attribute.parse("#vector.kind<and>")}
    return ops.create("vector.reduction", [condition], [ops.integer(1)], kind).result
