"""Rewrites of operators of com.microsoft, which ONNX Runtime's quantizer and its optimizer write,
in terms of ONNX's own. onnx infers no types for them.

Quantized operators dequantize their operands, compute with floats, and quantize the result, which
is how ONNX Runtime defines them. Later passes compute with the integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from aotc.errors import InputError
from aotc.frontends.onnx.elements import FLOAT, INT32, UINT8
from aotc.frontends.onnx.nodes import Node, known_input
from aotc.frontends.onnx.rewrites.body import Body, Rewrite, text_type

DOMAIN = "com.microsoft"
# The first opset in which Softmax is along one axis.
_FIRST_WITH_ONE_AXIS = 13
# The first opset that has BitwiseAnd.
_FIRST_BITWISE = 18


def _dequantized(node: Node, body: Body, index: int) -> str:
    """The tensor of the input `index`, whose scale and optional zero point follow it."""
    return body("DequantizeLinear", *(f"i{n}" for n in range(index, index + 3) if node.has(n)))


def _quantized(node: Node, body: Body, value: str, index: int) -> str:
    """The value with the scale of the input `index`, and the optional zero point behind it."""
    return body("QuantizeLinear", value, *(f"i{n}" for n in (index, index + 1) if node.has(n)))


def _binary(operator: str) -> Callable[[Node], str | None]:
    def rewritten(node: Node) -> str | None:
        body = Body(node.opset)
        value = body(operator, _dequantized(node, body, 0), _dequantized(node, body, 3))
        return body.end(y0=_quantized(node, body, value, 6))

    return rewritten


def _unary(operator: str, *names: str) -> Callable[[Node], str | None]:
    """Rewrites an operator of one tensor, with those of its attributes that it has."""

    def rewritten(node: Node) -> str | None:
        body = Body(node.opset)
        value = body(operator, _dequantized(node, body, 0), **node.given(*names))
        return body.end(y0=_quantized(node, body, value, 3))

    return rewritten


def _pool(operator: str, *names: str) -> Callable[[Node], str | None]:
    """A pool of images whose channels are first. Others have no lowering."""
    rewritten = _unary(operator, *names)
    return lambda node: None if node.attribute("channels_last", 0) else rewritten(node)


def _softmax(node: Node) -> str | None:
    """`opset` is that of the Softmax which was quantized."""
    if min(node.attribute("opset", 0), node.opset) < _FIRST_WITH_ONE_AXIS:
        return None
    body = Body(node.opset)
    value = body("Softmax", _dequantized(node, body, 0), axis=node.attribute("axis", -1))
    return body.end(y0=_quantized(node, body, value, 3))


def _concatenation(node: Node) -> str | None:
    """The inputs are the scale and zero point of the result, and three for each operand."""
    body = Body(node.opset)
    parts = [_dequantized(node, body, index) for index in range(2, len(node.proto.input), 3)]
    value = body("Concat", *parts, axis=node.attribute("axis", 0))
    return body.end(y0=_quantized(node, body, value, 0))


def _selection(node: Node) -> str | None:
    body = Body(node.opset)
    value = body("Where", "i0", _dequantized(node, body, 1), _dequantized(node, body, 4))
    return body.end(y0=_quantized(node, body, value, 7))


def _gemm(node: Node) -> str | None:
    """The scale of the bias is the product of the factors' scales. B may have one for each column,
    and the result may be of floats."""
    if node.has(6) and node.element(6) != INT32:
        return None
    body = Body(node.opset)
    transposed = {name: node.attribute(name, 0) for name in ("transA", "transB")}
    columns = {"axis": 1 - transposed["transB"]} if node.shape(4) not in ((), (1,)) else {}
    b = body("DequantizeLinear", "i3", "i4", *(["i5"] if node.has(5) else []), **columns)
    factors = [_dequantized(node, body, 0), b]
    alpha = float(node.attribute("alpha", 1.0))
    if node.has(6):
        scale = body("Mul", "i1", "i4")
        factors.append(body("Mul", body.cast("i6", FLOAT), scale))
    value = body("Gemm", *factors, **transposed, alpha=alpha, beta=alpha)
    return body.end(y0=_quantized(node, body, value, 7) if node.has(7) else value)


def _dynamic_matmul(node: Node) -> str | None:
    """A is quantized by its range."""
    body = Body(node.opset)
    a, scale, zero = body.several(3, "DynamicQuantizeLinear", "i0")
    b_zero = "i3" if node.has(3) else ""
    return _scaled_sums(node, body, (a, scale, zero), ("i1", "i2", b_zero), 4)


def _integer_matmul(node: Node) -> str | None:
    a_zero, b_zero = ("i4" if node.has(4) else ""), ("i5" if node.has(5) else "")
    return _scaled_sums(node, Body(node.opset), ("i0", "i2", a_zero), ("i1", "i3", b_zero), 6)


def _scaled_sums(
    node: Node, body: Body, a: tuple[str, str, str], b: tuple[str, str, str], bias: int
) -> str | None:
    """A product of two matrices of integers, given with their scales and optional zero points, as
    floats, plus the optional input `bias`."""
    zeros = [a[2], b[2]] if b[2] else [a[2]] if a[2] else []
    if b[2] and not a[2]:
        zeros = [body("CastLike", body.cast(body.integer(0), INT32), a[0]), b[2]]
    sums = body.cast(body("MatMulInteger", a[0], b[0], *zeros), FLOAT)
    value = body("Mul", sums, body("Mul", a[1], b[1]))
    return body.end(y0=body("Add", value, f"i{bias}") if node.has(bias) else value)


def _packed_matmul(node: Node) -> str | None:
    """A matrix of integers of `bits` bits, packed into bytes with the first one in the low bits.
    Each block of a column has a scale, and may have a zero point, packed likewise or a float."""
    names = ("N", "K", "bits", "block_size")
    columns, rows, bits, size = (node.attribute(name, 4 if name == "bits" else 0) for name in names)
    if node.has(4) or bits not in (2, 4, 8) or not size or not all((columns, rows)):
        return None
    body, element, blocks = Body(node.opset), node.element(2), -(-rows // size)
    row_bytes = -(-blocks * bits // 8)

    def unpacked(value: str) -> str:
        if bits < 8:
            shifts = body.cast(body.ints(range(0, 8, bits)), UINT8)
            shifted = body("BitShift", body.unsqueeze(value, -1), shifts, direction="RIGHT")
            operator, least = ("BitwiseAnd", 1) if node.opset >= _FIRST_BITWISE else ("Mod", 0)
            value = body(operator, shifted, body.cast(body.integer((1 << bits) - least), UINT8))
        return body.reshape(value, [columns, -1])

    zero = body.cast(body.integer(1 << bits - 1), element)
    if node.has(3):
        is_float = node.element(3) == element
        given, expected = known_input(node, 3), columns * (blocks if is_float else row_bytes)
        if given is not None and math.prod(given) != expected:
            raise InputError(
                f"{node.proto.name}: its zero points are {math.prod(given)} elements of "
                f"{text_type(node.element(3))}, and those of {columns} columns with {blocks} "
                f"blocks are {expected}."
            )
        # The last byte may have more than the last block's.
        zeros = "i3" if is_float else body.cast(body.part(unpacked("i3"), 0, blocks, 1), element)
        zero = body.reshape(zeros, [columns, blocks, 1])
    integers = body.cast(body.reshape(unpacked("i1"), [columns, blocks, size]), element)
    scaled = body("Mul", body("Sub", integers, zero), body.reshape("i2", [columns, blocks, 1]))
    matrix = body.reshape(scaled, [columns, blocks * size])
    if rows < blocks * size:
        matrix = body.part(matrix, 0, rows, 1)
    value = body("MatMul", "i0", body("Transpose", matrix, perm=[1, 0]))
    return body.end(y0=body("Add", value, "i5") if node.has(5) else value)


_PLACES = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")

MICROSOFT_REWRITES = tuple(
    Rewrite(operator, "(***) => (...)", body, DOMAIN)
    for operator, body in (
        ("DynamicQuantizeMatMul", _dynamic_matmul),
        ("MatMulIntegerToFloat", _integer_matmul),
        ("MatMulNBits", _packed_matmul),
        ("QGemm", _gemm),
        ("QLinearAdd", _binary("Add")),
        ("QLinearAveragePool", _pool("AveragePool", *_PLACES)),
        ("QLinearConcat", _concatenation),
        ("QLinearGlobalAveragePool", _pool("GlobalAveragePool")),
        ("QLinearLeakyRelu", _unary("LeakyRelu", "alpha")),
        ("QLinearMul", _binary("Mul")),
        ("QLinearReduceMean", _unary("ReduceMean", "axes", "keepdims")),
        ("QLinearSigmoid", _unary("Sigmoid")),
        ("QLinearSoftmax", _softmax),
        ("QLinearWhere", _selection),
    )
)
