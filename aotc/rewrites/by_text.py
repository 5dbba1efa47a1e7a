"""Operations replaced by others that are written as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.mlir import ir


def replace_by_text(operation: Any, function: str, operands: Sequence[Any] | None = None) -> None:
    """Puts the body of `function` in the place of `operation`.

    The function's arguments are `operands`, by default the operation's, and what it returns are the
    results.
    """
    with operation.context, operation.location:
        parsed = ir.Module.parse(function)
        body = parsed.body.operations[0].operation.regions[0].blocks[0]
        ops.replace_by_body(operation, body, operands or operation.operands)
        ops.erase(operation)
