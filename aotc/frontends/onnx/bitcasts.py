"""BitCast: the conversion of numbers that `rewrites.bitcasts` makes of it becomes one of bits."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.frontends.onnx.nodes import walk
from aotc.frontends.onnx.rewrites.bitcasts import INTEGERS

_LABEL = "onnx.BitCast"
_CONVERSIONS = ("arith.sitofp", "arith.fptosi")


def count_bitcasts(model: Any) -> int:
    """The conversions that `lower_bitcasts` has to find."""
    return sum(
        1
        for node in walk(model)
        if node.operator == "Cast"
        and node.proto.name.startswith(_LABEL)
        and (node.element(0) in INTEGERS) != (node.attribute("to", 0) in INTEGERS)
    )


def lower_bitcasts(function: Any, count: int) -> None:
    """Raises InputError where torch-mlir did not leave one conversion for each."""
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
