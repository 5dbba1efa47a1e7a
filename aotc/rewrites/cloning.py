"""Copies of operations, in which values stand for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops


def copy(operation: Any, values: dict[Any, Any]) -> Any:
    """A copy of `operation` at the insertion point, with its operands replaced by `values`.

    What it makes is entered into `values`.
    """
    made = operation.clone().operation
    for inner in ops.walk(made):
        for i, operand in enumerate(inner.operands):
            if operand in values:
                inner.operands[i] = values[operand]
    values.update(zip(operation.results, made.results, strict=True))
    return made


def body_of(loop: Any) -> list[Any]:
    """The operations of a loop's body but for its last, which ends it."""
    return [op.operation for op in loop.regions[0].blocks[0].operations][:-1]


def copy_in_step(operations: Sequence[Any], copies: Sequence[dict[Any, Any]]) -> None:
    """Copies of a parallel loop's body for several of its points: each operation for all of them,
    then the next one.

    So what all of them load is on its way before the first of them uses it. No order is lost: the
    points of a parallel loop have none.
    """
    for operation in operations:
        for values in copies:
            copy(operation, values)
