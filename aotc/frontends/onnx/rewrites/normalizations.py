"""Rewrites of batch, instance, Lp and local response normalization, of the weighted softmax
cross-entropy loss, and of Hardmax and LogSoftmax of old opsets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aotc.frontends.onnx.elements import DOUBLE, FLOAT
from aotc.frontends.onnx.nodes import Node
from aotc.frontends.onnx.rewrites.body import Body, Rewrite, constant, scalar


def _reduced(name: str, operator: str, value: str, axes: Sequence[int], opset: int) -> list[str]:
    """Lines of a reduction along axes. In older opsets the axes are an attribute."""
    if opset < 18:
        listed = ", ".join(map(str, axes))
        return [f"{name} = {operator} <axes: ints = [{listed}], keepdims: int = 1> ({value})"]
    return [
        constant(f"{name}_axes", axes),
        f"{name} = {operator} <keepdims: int = 1> ({value}, {name}_axes)",
    ]


def _batch_normalization(node: Node) -> str | None:
    """x * factor + shift. Factor and shift are constants of the build, as in the lowering of
    PyTorch's batch norm. torch-mlir subtracts the mean and multiplies by the reciprocal of the
    deviation first."""
    shape = node.shape(0)
    if shape is None or node.attribute("training_mode", 0) or len(node.proto.output) > 1:
        return None
    body = Body(node.opset)
    element = node.element(0)
    wide = DOUBLE if element == DOUBLE else FLOAT
    names = ("x", "scale", "bias", "mean", "variance")
    x, scale, bias, mean, variance = (
        name if node.element(index) == wide else body.cast(name, wide)
        for index, name in enumerate(names)
    )
    epsilon = body.numbers(node.attribute("epsilon", 1e-5), wide)
    factor = body("Div", scale, body("Sqrt", body("Add", variance, epsilon)))
    shift = body("Sub", bias, body("Mul", mean, factor))
    along = [-1, *(1 for _ in shape[2:])]
    scaled = body("Mul", x, body.reshape(factor, along))
    normal = body("Add", scaled, body.reshape(shift, along))
    return body.end(y=normal if element == wide else body.cast(normal, element))


def _instance_normalization(node: Node) -> str | None:
    """torch-mlir divides by a wrong number of elements if some sizes are not known."""
    shape = node.shape(0)
    if shape is None or None not in shape:
        return None
    axes = range(2, len(shape))
    epsilon = node.attribute("epsilon", 1e-5)
    return "\n".join(
        [
            *_reduced("mean", "ReduceMean", "x", axes, node.opset),
            "moved = Sub (x, mean)",
            "square = Mul (moved, moved)",
            *_reduced("variance", "ReduceMean", "square", axes, node.opset),
            scalar("epsilon", epsilon, node.element(0)),
            "above = Add (variance, epsilon)",
            "deviation = Sqrt (above)",
            "normal = Div (moved, deviation)",
            constant("along", [-1, *(1 for axis in axes)]),
            "scale_c = Reshape (scale, along)",
            "bias_c = Reshape (bias, along)",
            "scaled = Mul (normal, scale_c)",
            "y = Add (scaled, bias_c)",
        ]
    )


def _lp_normalization(node: Node) -> str:
    """A vector of zeros is not changed."""
    axis = node.attribute("axis", -1)
    return "\n".join(
        [
            *_reduced("norm", f"ReduceL{node.attribute('p', 2)}", "x", [axis], node.opset),
            scalar("zero", 0, node.element(0)),
            scalar("one", 1, node.element(0)),
            "is_zero = Equal (norm, zero)",
            "divisor = Where (is_zero, one, norm)",
            "y = Div (x, divisor)",
        ]
    )


def _weighted_loss(node: Node) -> str | None:
    """torch-mlir divides by a wrong sum of weights."""
    if not node.has(2) or node.attribute("reduction", "mean") != "mean":
        return None
    ignored = node.attribute("ignore_index")
    ignore = "" if ignored is None else f", ignore_index: int = {ignored}"
    return "\n".join(
        [
            "log_prob = LogSoftmax <axis: int = 1> (scores)",
            'loss = NegativeLogLikelihoodLoss <reduction: string = "mean"'
            f"{ignore}> (log_prob, labels, weights)",
        ]
    )


def _log_softmax(node: Node) -> str | None:
    """Before opset 13, all dimensions from the axis on are one. torch-mlir crashes where it cannot
    restore their sizes."""
    shape, axis = node.shape(0), node.attribute("axis", 1)
    if node.opset >= 13 or shape is None or None not in shape or axis in (-1, len(shape) - 1):
        return None
    body, axes = Body(node.opset), range(axis % len(shape), len(shape))
    moved = body("Sub", "x", body.reduce("ReduceMax", "x", axes, keeps=True))
    total = body.reduce("ReduceSum", body("Exp", moved), axes, keeps=True)
    return body.end(y=body("Sub", moved, body("Log", total)))


def _local_response(node: Node) -> str | None:
    """The squares of neighboring channels are added one by one. torch-mlir flattens dimensions, of
    which at most one may have an unknown size."""
    shape = node.shape(0)
    if shape is None or None not in shape:
        return None
    body, size = Body(node.opset), node.attribute("size")
    # 16-bit squares would overflow.
    element = node.element(0)
    wide = DOUBLE if element == DOUBLE else FLOAT
    x = body.cast("x", wide)
    before, after = (size - 1) // 2, size // 2
    widths = [int(axis == 1) * count for count in (before, after) for axis in range(len(shape))]
    padded = body.pad(body("Mul", x, x), widths)
    total = ""
    for first in range(size):
        end = first + 1 - size or np.iinfo(np.int64).max
        part = body.part(padded, first, end, 1)
        total = body("Add", total, part) if total else part
    scale = body.numbers(node.attribute("alpha", 1e-4) / size, wide)
    base = body("Add", body.numbers(node.attribute("bias", 1.0), wide), body("Mul", total, scale))
    norm = body("Pow", base, body.numbers(node.attribute("beta", 0.75), wide))
    return body.end(y=body.cast(body("Div", x, norm), element))


def _hardmax(node: Node) -> str | None:
    """Before opset 13, all dimensions from the axis on are one. torch-mlir takes the axis alone."""
    shape, axis = node.shape(0), node.attribute("axis", 1)
    if node.opset >= 13 or (shape is not None and axis in (-1, len(shape) - 1)):
        return None
    body = Body(node.opset)
    rows = body("Hardmax", body("Flatten", "x", axis=axis), axis=1)
    if shape is None or shape.count(None) > 1:
        return body.end(y=body("Reshape", rows, body("Shape", "x")))
    return body.end(y=body.reshape(rows, [-1 if size is None else size for size in shape]))


HARDMAX = Rewrite("Hardmax", "(x) => (y)", _hardmax)
NORMALIZATION_REWRITES = (
    HARDMAX,
    Rewrite("LogSoftmax", "(x) => (y)", _log_softmax),
    Rewrite("LRN", "(x) => (y)", _local_response),
    Rewrite("BatchNormalization", "(x, scale, bias, mean, variance) => (y)", _batch_normalization),
    Rewrite("InstanceNormalization", "(x, scale, bias) => (y)", _instance_normalization),
    Rewrite("LpNormalization", "(x) => (y)", _lp_normalization),
    Rewrite(
        "SoftmaxCrossEntropyLoss", "(scores, labels, weights) => (loss, log_prob)", _weighted_loss
    ),
)
