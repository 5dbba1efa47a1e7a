"""Rewrites BitCast as numeric conversions, which `aotc.frontends.onnx.bitcasts` later replaces by
bitcasts."""

from __future__ import annotations

from aotc.frontends.onnx.elements import (
    BFLOAT16,
    BOOL,
    DOUBLE,
    FLOAT,
    FLOAT16,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
)
from aotc.frontends.onnx.nodes import Node
from aotc.frontends.onnx.rewrites.body import Body, Rewrite

# The float types, and the integer types of the same width.
INTEGERS = {FLOAT: INT32, FLOAT16: INT16, DOUBLE: INT64, BFLOAT16: INT16}
_SIGNED = {UINT16: INT16, UINT32: INT32, UINT64: INT64}
# Element types for which a numeric conversion keeps the bits, or can be replaced by a bitcast.
# Floats of 8 bits and fewer have neither.
_KNOWN = {*INTEGERS, BOOL, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64}


def _bitcast(node: Node) -> str | None:
    source, target = node.element(0), node.attribute("to", 0)
    if source != target and not {source, target} <= _KNOWN:
        return None
    body = Body(node.opset)
    value = "x"
    if source in INTEGERS and target not in INTEGERS:
        value = body.cast(value, INTEGERS[source])
    if source not in INTEGERS and target in INTEGERS and source in _SIGNED:
        value = body.cast(value, _SIGNED[source])
    if source in INTEGERS and target in INTEGERS and source != target:
        value = body.cast(body.cast(value, INTEGERS[source]), target)
    return body.end(y=body.cast(value, target))


BITCAST_REWRITES = (Rewrite("BitCast", "(x) => (y)", _bitcast),)
