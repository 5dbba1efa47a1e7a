"""Scores of classes (ai.onnx.ml): post-transforms, and the labels with the largest score."""

from __future__ import annotations

from collections.abc import Sequence

from aotc.frontends.onnx.elements import DOUBLE, FLOAT
from aotc.frontends.onnx.nodes import Node
from aotc.frontends.onnx.rewrites.body import Body

DOMAIN = "ai.onnx.ml"


def computed_element(node: Node) -> int:
    """The type that the operator computes in."""
    return DOUBLE if node.element(0) == DOUBLE else FLOAT


def transformed(body: Body, scores: str, transform: str) -> str | None:
    """Scores [rows, classes] after a `post_transform`. None for one that has no lowering."""
    if transform == "NONE":
        return scores
    if transform == "LOGISTIC":
        return body("Sigmoid", scores)
    if transform == "SOFTMAX":
        return body("Softmax", scores, axis=1)
    return None


def binary_scores(body: Body, score: str, *, is_opposite: bool) -> str:
    """The scores of two classes, given that of the second, [rows, 1]. The first is its negation if
    `is_opposite`, and otherwise 1 minus it."""
    other = body("Neg", score) if is_opposite else body("Sub", body.numbers(1.0), score)
    return body("Concat", other, score, axis=1)


def labels_of(body: Body, scores: str, classes: Sequence[int]) -> str:
    """The label of the largest score of each row."""
    best = body("ArgMax", scores, axis=1, keepdims=0)
    return body("Gather", body.ints(list(classes)), best, axis=0)
