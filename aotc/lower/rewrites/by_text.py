"""Operations replaced by others that are written as text."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir


def replace_by_text(operation: Any, function: str) -> None:
    """Puts the body of `function` in the place of `operation`.

    The function's arguments are the operation's operands, and what it returns are the results.
    """
    with operation.context, operation.location:
        parsed = ir.Module.parse(function)
        body = parsed.body.operations[0].operation.regions[0].blocks[0]
        for argument, value in zip(body.arguments, operation.operands, strict=True):
            argument.replace_all_uses_with(value)
        *made, returned = body.operations
        for replacement in made:
            for inner in ops.walk(replacement.operation):
                # Places in the parsed text are none in the input.
                inner.location = operation.location
            replacement.operation.move_before(operation)
        for result, value in zip(operation.results, returned.operands, strict=True):
            result.replace_all_uses_with(value)
        operation.erase()
