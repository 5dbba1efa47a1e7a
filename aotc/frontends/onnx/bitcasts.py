"""Replaces the numeric conversions that `rewrites.bitcasts` makes of BitCast by `arith.bitcast`."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.frontends.onnx.nodes import walk
from aotc.frontends.onnx.rewrites.bitcasts import INTEGERS

_LABEL = "onnx.BitCast"
_CONVERSIONS = ("arith.sitofp", "arith.fptosi")


def count_bitcasts(model: Any) -> int:
    """The number of conversions that `lower_bitcasts` must find."""
    return sum(
        1
        for node in walk(model)
        if node.operator == "Cast"
        and node.proto.name.startswith(_LABEL)
        and (node.element(0) in INTEGERS) != (node.attribute("to", 0) in INTEGERS)
    )


def lower_bitcasts(function: Any, count: int) -> None:
    """Replaces `count` conversions. Raises InputError if torch-mlir's result has another number of
    them."""
    from torch_mlir import ir

    if not count:
        return
    found = [
        operation
        for name in _CONVERSIONS
        for operation in list(ops.find(function, name))
        if str(operation.location).startswith(f'loc("{_LABEL}')
    ]
    if len(found) != count:
        raise InputError(f"{_LABEL}: of constants, or twice of one value, it has no lowering")
    for conversion in found:
        with conversion.location, ir.InsertionPoint(conversion):
            made = ir.Operation.create(
                "arith.bitcast", [conversion.results[0].type], list(conversion.operands)
            )
        ops.replace(conversion, [made.result])
