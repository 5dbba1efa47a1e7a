"""InstanceNormalization, LpNormalization, and the loss of a softmax with weights."""

from __future__ import annotations

from collections.abc import Sequence

from aotc.frontends.onnx.nodes import Node
from aotc.frontends.onnx.rewrites.body import Rewrite, constant, scalar


def _reduced(name: str, operator: str, value: str, axes: Sequence[int], opset: int) -> list[str]:
    """A reduction along axes, which were an attribute before they became an input."""
    if opset < 18:
        listed = ", ".join(map(str, axes))
        return [f"{name} = {operator} <axes: ints = [{listed}], keepdims: int = 1> ({value})"]
    return [
        constant(f"{name}_axes", axes),
        f"{name} = {operator} <keepdims: int = 1> ({value}, {name}_axes)",
    ]


def _instance_normalization(node: Node) -> str | None:
    """torch-mlir divides by another number of elements where it does not know the sizes."""
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
    """A vector of zeros stays one."""
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
    """torch-mlir divides by another sum of weights."""
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


NORMALIZATION_REWRITES = (
    Rewrite("InstanceNormalization", "(x, scale, bias) => (y)", _instance_normalization),
    Rewrite("LpNormalization", "(x) => (y)", _lp_normalization),
    Rewrite(
        "SoftmaxCrossEntropyLoss", "(scores, labels, weights) => (loss, log_prob)", _weighted_loss
    ),
)
