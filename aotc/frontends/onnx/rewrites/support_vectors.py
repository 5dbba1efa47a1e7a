"""Rewrites of support vector machines (ai.onnx.ml)."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from aotc.frontends.onnx.elements import FLOAT
from aotc.frontends.onnx.nodes import Node
from aotc.frontends.onnx.rewrites.body import Body, Rewrite
from aotc.frontends.onnx.rewrites.scores import DOMAIN, binary_scores, computed_element, labels_of


def _numbers(node: Node, name: str) -> np.ndarray:
    return np.array(node.attribute(name) or (), np.float32)


def _kernels(node: Node, body: Body, count: int, element: int) -> str | None:
    """The kernel function of each row of features and each of `count` support vectors."""
    shape, vectors = node.shape(0), _numbers(node, "support_vectors")
    parameters = _numbers(node, "kernel_params")
    kind = node.attribute("kernel_type", "LINEAR").upper()
    if shape is None or len(shape) != 2 or not count or vectors.size != count * (shape[1] or 0):
        return None
    if kind != "LINEAR" and len(parameters) != 3:
        return None
    vectors, x = vectors.reshape(count, -1), body.cast("x", element)
    if kind == "RBF":
        # The difference is computed first: a difference of squares would cancel for close rows.
        away = body("Sub", body.unsqueeze(x, 1), body.numbers(vectors, element))
        distance = body.reduce("ReduceSum", body("Mul", away, away), [2])
        return body("Exp", body("Mul", distance, body.numbers(-parameters[0], element)))
    product = body("MatMul", x, body.numbers(vectors.T, element))
    if kind == "LINEAR":
        return product
    scaled = body("Mul", product, body.numbers(parameters[0], element))
    scaled = body("Add", scaled, body.numbers(parameters[1], element))
    if kind == "SIGMOID":
        return body("Tanh", scaled)
    if kind == "POLY":
        return body("Pow", scaled, body.numbers(float(int(parameters[2])), element))
    return None


def _regressor(node: Node) -> str | None:
    coefficients, rho = _numbers(node, "coefficients"), _numbers(node, "rho")
    body, element = Body(node.opset), computed_element(node)
    kernels = _kernels(node, body, len(coefficients), element)
    if kernels is None or len(rho) != 1 or node.attribute("n_supports", 0) != len(coefficients):
        return None
    if node.attribute("post_transform", "NONE") != "NONE" or node.attribute("n_targets", 1) != 1:
        return None
    made = body("MatMul", kernels, body.numbers(coefficients[:, None], element))
    made = body("Add", made, body.numbers(rho[0], element))
    if node.attribute("one_class", 0):
        is_inside = body("Greater", made, body.numbers(0.0, element))
        one, other = (body.numbers(value, element) for value in (1.0, -1.0))
        made = body("Where", is_inside, one, other)
    return body.end(y=body.cast(made, FLOAT))


def _classifier(node: Node) -> str | None:
    """Each pair of classes votes for one of the two; the scores are the decision values of the
    pairs. Probabilities, which are found iteratively, have no lowering."""
    classes, counts = node.attribute("classlabels_ints"), node.attribute("vectors_per_class")
    coefficients, rho = _numbers(node, "coefficients"), _numbers(node, "rho")
    if not classes or not counts or len(classes) != len(counts) or len(classes) < 2:
        return None
    pairs = list(combinations(range(len(classes)), 2))
    vectors = sum(counts)
    if coefficients.size != (len(classes) - 1) * vectors or len(rho) != len(pairs):
        return None
    if node.attribute("prob_a") or node.attribute("post_transform", "NONE") != "NONE":
        return None
    if len(pairs) == 1 and (coefficients >= 0).all():
        # ONNX defines another rule for the label in this case.
        return None
    body, element = Body(node.opset), computed_element(node)
    kernels = _kernels(node, body, vectors, element)
    if kernels is None:
        return None
    rows = coefficients.reshape(-1, vectors)
    ends = np.cumsum(counts)
    weights = np.zeros((vectors, len(pairs)), np.float32)
    votes = np.zeros((2, len(pairs), len(classes)))
    for pair, (one, other) in enumerate(pairs):
        for mine, row in ((one, other - 1), (other, one)):
            part = slice(ends[mine] - counts[mine], ends[mine])
            weights[part, pair] = rows[row, part]
        votes[0, pair, one], votes[1, pair, other] = 1, 1
    scores = body("MatMul", kernels, body.numbers(weights, element))
    scores = body("Add", scores, body.numbers(rho[None], element))
    is_first = body.cast(body("Greater", scores, body.numbers(0.0, element)), FLOAT)
    counted = body("MatMul", is_first, body.numbers(votes[0] - votes[1]))
    counted = body("Add", counted, body.numbers(votes[1].sum(0, keepdims=True)))
    made = body.cast(scores, FLOAT)
    if len(pairs) == 1:
        made = binary_scores(body, made, is_opposite=True)
    return body.end(y=labels_of(body, counted, classes), scores=made)


SUPPORT_VECTOR_REWRITES = (
    Rewrite("SVMClassifier", "(x) => (y, scores)", _classifier, DOMAIN),
    Rewrite("SVMRegressor", "(x) => (y)", _regressor, DOMAIN),
)
