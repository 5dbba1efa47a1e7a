"""Replacement of operations by operations that are written as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.mlir import ir


def replace_by_text(operation: Any, function: str, operands: Sequence[Any] | None = None) -> None:
    """Replaces `operation` by the body of `function`.

    The function's arguments become `operands` (by default the operation's), and the values that it
    returns replace the operation's results.
    """
    with operation.context, operation.location:
        parsed = ir.Module.parse(function)
        body = parsed.body.operations[0].operation.regions[0].blocks[0]
        ops.replace_by_body(operation, body, operands or operation.operands)
        ops.erase(operation)
