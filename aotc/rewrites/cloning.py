"""Copies of operations, with operands replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops


def copy(operation: Any, values: dict[Any, Any]) -> Any:
    """Copies `operation` to the insertion point, with its operands mapped by `values`.

    The results of the copy are added to `values`.
    """
    made = operation.clone().operation
    for inner in ops.walk(made):
        for i, operand in enumerate(inner.operands):
            if operand in values:
                inner.operands[i] = values[operand]
    values.update(zip(operation.results, made.results, strict=True))
    return made


def body_of(loop: Any) -> list[Any]:
    """The operations of a loop's body without its terminator."""
    return ops.content(loop)[:-1]


def copy_interleaved(operations: Sequence[Any], copies: Sequence[dict[Any, Any]]) -> None:
    """Copies the body of a parallel loop for several points, interleaved: each operation for all
    points, then the next operation.

    So the loads of all points are issued before the first use. The order of the points may change,
    as the iterations of a parallel loop are independent.
    """
    for operation in operations:
        for values in copies:
            copy(operation, values)
