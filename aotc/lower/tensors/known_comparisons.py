"""Folds comparisons of integers whose result the ranges of their operands determine.

A front end adds the size to a negative index, and checks that the result is in bounds. Indices from
a constant table, such as the nodes of a decision tree, need neither.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.attributes import CHECK_ATTRIBUTE
from aotc.lower.tensors.integer_ranges import (
    Range,
    decided,
    is_integer,
    range_of_scalar,
    ranges_in,
)
from aotc.mlir import ir

# The limit of operations that the range analysis looks through to inputs of a `linalg.generic`.
# The ranges in its body are known when they are used.
_MOST_STEPS = 4


def fold_comparisons(module: Any) -> None:
    """Changes the bodies of `linalg.generic` in `module`, in place."""
    with module.context:
        for generic in ops.find(module.operation, "linalg.generic"):
            body = ops.content(generic)
            if any(operation.name == "arith.cmpi" for operation in body):
                _fold(body, ranges_in(generic, _MOST_STEPS))


def _fold(body: list[Any], known: dict[Any, Range]) -> None:
    for operation in body:
        if operation.name == "arith.cmpi" and is_integer(operation.operands[0].type):
            left, right = (range_of_scalar(one, known, _MOST_STEPS) for one in operation.operands)
            predicate = ir.IntegerAttr(operation.attributes["predicate"]).value
            result = decided(predicate, left, right)
            if result is False:
                _assert_checks(operation.results[0])
            if result or (result is False and _only_selects(operation.results[0])):
                with operation.location, ir.InsertionPoint(operation):
                    ops.replace(operation, [ops.constant(ops.integer(1), result)])
                continue
        for result in operation.results:
            if is_integer(result.type):
                known[result] = range_of_scalar(result, known, _MOST_STEPS)


def _assert_checks(condition: Any) -> None:
    """Asserts a condition that is false where checks depend on it. Once it is a constant, MLIR
    folds the checks' selections, whose attributes are lost."""
    for select in [use.owner.operation for use in condition.uses if use.operand_number == 0]:
        if CHECK_ATTRIBUTE in select.attributes:
            message = {"msg": select.attributes[CHECK_ATTRIBUTE]}
            del select.attributes[CHECK_ATTRIBUTE]
            with select.location, ir.InsertionPoint(select):
                false = ops.constant(ops.integer(1), False)
                ops.create("cf.assert", [false], attributes=message)


def _only_selects(condition: Any) -> bool:
    """Whether a condition only selects values. Another condition that is computed from it may be
    that of a check."""
    uses = condition.uses
    return all(use.owner.name == "arith.select" and use.operand_number == 0 for use in uses)
