"""Rewrites of the operators of com.microsoft that ONNX Runtime's optimizer fuses from several of
ONNX's, back to those."""

from __future__ import annotations

import math
from collections.abc import Callable

from aotc.frontends.onnx.elements import FLOAT
from aotc.frontends.onnx.nodes import Node
from aotc.frontends.onnx.rewrites.body import Body, Rewrite
from aotc.frontends.onnx.rewrites.microsoft import DOMAIN

# Activation → the operator's attributes, in the order of the parameters of FusedConv.
_ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "": (),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
}
_CONVOLUTION = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


def _number(node: Node, body: Body, value: float) -> str:
    return body.numbers(value, node.element(0) or FLOAT)


def _activated(node: Node, compute: Callable[[Node, Body, str], str]) -> str:
    """`compute` of the sum of all inputs."""
    body, total = Body(node.opset), "i0"
    if node.has(1):
        total = body("Add", total, "i1")
    return body.end(y0=compute(node, body, total))


def _gelu(node: Node, body: Body, x: str) -> str:
    erf = body("Erf", body("Mul", x, _number(node, body, math.sqrt(0.5))))
    half = body("Mul", x, _number(node, body, 0.5))
    return body("Mul", half, body("Add", erf, _number(node, body, 1.0)))


def _gelu_of_tanh(node: Node, body: Body, x: str) -> str:
    cube = body("Mul", body("Mul", x, x), body("Mul", x, _number(node, body, 0.044715)))
    scaled = body("Mul", body("Add", x, cube), _number(node, body, math.sqrt(2 / math.pi)))
    half = body("Mul", x, _number(node, body, 0.5))
    return body("Mul", half, body("Add", body("Tanh", scaled), _number(node, body, 1.0)))


def _gelu_of_sigmoid(node: Node, body: Body, x: str) -> str:
    alpha = float(node.attribute("alpha", 1.702))
    return body("Mul", x, body("Sigmoid", body("Mul", x, _number(node, body, alpha))))


def _layer_norm_of_sum(node: Node) -> str | None:
    """The optional results are the mean and deviation, which are of training, and the sum."""
    results = node.proto.output
    if any(results[1:3]):
        return None
    body = Body(node.opset)
    total = body("Add", "i0", "i1")
    if node.has(4):
        total = body("Add", total, "i4")
    factors = ["i2", *(["i3"] if node.has(3) else [])]
    epsilon = float(node.attribute("epsilon", 1e-12))
    y = body("LayerNormalization", total, *factors, axis=-1, epsilon=epsilon)
    return body.end(y0=y, **{f"y{i}": total for i in range(1, len(results))})


def _convolution(node: Node) -> str | None:
    """Plus an optional input, and an activation with its parameters."""
    name = node.attribute("activation", "")
    parameters = node.attribute("activation_params") or ()
    if name not in _ACTIVATIONS or len(parameters) < len(_ACTIVATIONS[name]):
        return None
    body = Body(node.opset)
    bias = ["i2"] if node.has(2) else []
    y = body("Conv", "i0", "i1", *bias, **node.given(*_CONVOLUTION))
    if node.has(3):
        y = body("Add", y, "i3")
    given = dict(zip(_ACTIVATIONS[name], map(float, parameters), strict=False))
    return body.end(y0=body(name, y, **given) if name else y)


def _gemm(node: Node) -> str | None:
    name = node.attribute("activation", "")
    if name not in _ACTIVATIONS:
        return None
    body = Body(node.opset)
    given = {one: node.attribute(f"activation_{one}") for one in _ACTIVATIONS[name]}
    known = {one: float(value) for one, value in given.items() if value is not None}
    c = ["i2"] if node.has(2) else []
    y = body("Gemm", "i0", "i1", *c, **node.given("alpha", "beta", "transA", "transB"))
    return body.end(y0=body(name, y, **known) if name else y)


def _matmul(node: Node) -> str | None:
    """A product of matrices, each of which may be transposed."""
    if node.attribute("transBatchA", 0) or node.attribute("transBatchB", 0):
        return None
    body, factors = Body(node.opset), []
    for index, name in enumerate(("transA", "transB")):
        factor, shape = f"i{index}", node.shape(index)
        if node.attribute(name, 0):
            if shape is None:
                return None
            # A vector has nothing to transpose.
            order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
            factor = body("Transpose", factor, perm=order) if len(shape) > 1 else factor
        factors.append(factor)
    y = body("MatMul", *factors)
    alpha = float(node.attribute("alpha", 1.0))
    return body.end(y0=y if alpha == 1 else body("Mul", y, _number(node, body, alpha)))


FUSED_REWRITES = tuple(
    Rewrite(operator, "(***) => (...)", rewritten, DOMAIN)
    for operator, rewritten in (
        ("BiasGelu", lambda node: _activated(node, _gelu)),
        ("FastGelu", lambda node: _activated(node, _gelu_of_tanh)),
        ("FusedConv", _convolution),
        ("FusedGemm", _gemm),
        ("FusedMatMul", _matmul),
        ("Gelu", lambda node: _activated(node, _gelu)),
        ("QuickGelu", lambda node: _activated(node, _gelu_of_sigmoid)),
        ("SkipLayerNormalization", _layer_norm_of_sum),
    )
)
