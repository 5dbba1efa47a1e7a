"""Folds comparisons of integers whose result the ranges of their operands determine.

A front end adds the size to a negative index, and checks that the result is in bounds. Indices from
a constant table, such as the nodes of a decision tree, need neither.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.attributes import CHECK_ATTRIBUTE
from aotc.lower.tensors.integer_ranges import Range, is_integer, range_of_scalar, ranges_in
from aotc.mlir import ir

# The limit of operations that the range analysis looks through to inputs of a `linalg.generic`.
# The ranges in its body are known when they are used.
_MOST_STEPS = 4
# Predicates of `arith.cmpi`.
_EQ, _NE, _SLT, _SLE, _SGT, _SGE, _ULT = range(7)
_SIGNED_OF_UNSIGNED = _ULT - _SLT
_REVERSED = {_SGT: _SLT, _SGE: _SLE}


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
            result = _decided(predicate, left, right)
            # A check that always fails stays one.
            if result or (result is False and _only_selects(operation.results[0])):
                with operation.location, ir.InsertionPoint(operation):
                    ops.replace(operation, [ops.constant(ops.integer(1), result)])
                continue
        for result in operation.results:
            if is_integer(result.type):
                known[result] = range_of_scalar(result, known, _MOST_STEPS)


def _decided(predicate: int, left: Range, right: Range) -> bool | None:
    """The result of a comparison; None if the ranges do not determine it."""
    if predicate in (_EQ, _NE):
        are_apart = left[1] < right[0] or right[1] < left[0]
        are_equal = left == right and left[0] == left[1]
        return (predicate == _NE) == are_apart if are_apart or are_equal else None
    if predicate >= _ULT:
        if left[0] < 0 or right[0] < 0:
            return None
        predicate -= _SIGNED_OF_UNSIGNED
    if predicate in _REVERSED:
        predicate, left, right = _REVERSED[predicate], right, left
    # Now a comparison with < or <=.
    or_equal = int(predicate == _SLE)
    if left[1] < right[0] + or_equal:
        return True
    return False if left[0] >= right[1] + or_equal else None


def _only_selects(condition: Any) -> bool:
    """Whether a condition only selects values, and no check depends on it."""
    return all(
        use.owner.name == "arith.select"
        and use.operand_number == 0
        and CHECK_ATTRIBUTE not in use.owner.attributes
        for use in condition.uses
    )
