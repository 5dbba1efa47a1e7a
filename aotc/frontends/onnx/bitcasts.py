"""BitCast: the conversion of numbers that torch-mlir makes of it becomes one of bits."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.frontends.onnx.bodies import Body, Rewrite
from aotc.frontends.onnx.nodes import Node, walk

_LABEL = "onnx.BitCast"
_FLOATS = {1: 6, 10: 5, 11: 7, 16: 5}  # with the integers of as many bits
_UNSIGNED = {4: 5, 12: 6, 13: 7}
_CONVERSIONS = ("arith.sitofp", "arith.fptosi")


def _bitcast(node: Node) -> str | None:
    source, target = node.element(0), node.attribute("to", 0)
    body = Body(node.opset)
    value = "x"
    if source in _FLOATS and target not in _FLOATS:
        value = body.cast(value, _FLOATS[source])
    if source not in _FLOATS and target in _FLOATS and source in _UNSIGNED:
        value = body.cast(value, _UNSIGNED[source])
    if source in _FLOATS and target in _FLOATS and source != target:
        value = body.cast(body.cast(value, _FLOATS[source]), target)
    return body.end(y=body.cast(value, target))


def count_bitcasts(model: Any) -> int:
    """The conversions that `lower_bitcasts` has to find."""
    return sum(
        1
        for node in walk(model)
        if node.operator == "Cast"
        and node.proto.name.startswith(_LABEL)
        and (node.element(0) in _FLOATS) != (node.attribute("to", 0) in _FLOATS)
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
        conversion.results[0].replace_all_uses_with(made.result)
        ops.erase(conversion)


BITCAST_REWRITES = (Rewrite("BitCast", "(x) => (y)", _bitcast),)
