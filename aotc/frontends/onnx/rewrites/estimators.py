"""Rewrites of linear models and of feature preprocessing (ai.onnx.ml) with numeric features."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aotc.frontends.onnx.elements import DOUBLE, FLOAT, FLOATS, INT32, INT64
from aotc.frontends.onnx.nodes import Node
from aotc.frontends.onnx.rewrites.body import Body, Rewrite
from aotc.frontends.onnx.rewrites.scores import (
    DOMAIN,
    binary_scores,
    computed_element,
    labels_of,
    transformed,
)

# The least norm.
_LEAST_NORM = 1e-30


def _linear(node: Node, body: Body, count: int) -> str | None:
    """The products of rows of features with the coefficients of `count` results."""
    shape = node.shape(0)
    coefficients = np.array(node.attribute("coefficients", []), np.float32)
    if shape is None or len(shape) != 2 or not count or coefficients.size % count:
        return None
    element = computed_element(node)
    weights = coefficients.reshape(count, -1).T
    made = body("MatMul", body.cast("x", element), body.numbers(weights, element))
    intercepts = node.attribute("intercepts")
    if intercepts:
        if len(intercepts) != count:
            return None
        made = body("Add", made, body.numbers([list(intercepts)], element))
    return body.cast(made, FLOAT)


def _linear_regressor(node: Node) -> str | None:
    body = Body(node.opset)
    made = _linear(node, body, node.attribute("targets", 1))
    if made is None or node.attribute("post_transform", "NONE") != "NONE":
        return None
    return body.end(y=made)


def _linear_classifier(node: Node) -> str | None:
    classes, shape = node.attribute("classlabels_ints"), node.shape(0)
    if not classes or shape is None or shape[-1] is None or len(classes) == 1:
        return None
    count = len(node.attribute("coefficients", [])) // max(1, shape[-1])
    if count not in (1, len(classes)) or (count == 1 and len(classes) != 2):
        return None
    body = Body(node.opset)
    scores = _linear(node, body, count)
    if scores is None:
        return None
    if count == 1:
        scores = binary_scores(body, scores, is_opposite=True)
    made = transformed(body, scores, node.attribute("post_transform", "NONE"))
    if made is None:
        return None
    return body.end(y=labels_of(body, made, classes), scores=made)


def _scaler(node: Node) -> str | None:
    if not node.element(0):
        return None
    body, element = Body(node.opset), computed_element(node)
    offset, scale = node.attribute("offset"), node.attribute("scale")
    made = body.cast("x", element)
    if offset:
        made = body("Sub", made, body.numbers(list(offset), element))
    if scale:
        made = body("Mul", made, body.numbers(list(scale), element))
    return body.end(y=body.cast(made, FLOAT))


def _normalizer(node: Node) -> str | None:
    shape = node.shape(0)
    if shape is None or len(shape) != 2:
        return None
    body, element = Body(node.opset), computed_element(node)
    x = body.cast("x", element)
    size = body("Abs", x)
    norm = node.attribute("norm", "MAX")
    if norm == "L2":
        size = body("Sqrt", body.reduce("ReduceSum", body("Mul", x, x), [1], keeps=True))
    else:
        operator = "ReduceSum" if norm == "L1" else "ReduceMax"
        size = body.reduce(operator, size, [1], keeps=True)
    size = body("Max", size, body.numbers(_LEAST_NORM, element))
    return body.end(y=body.cast(body("Div", x, size), FLOAT))


def _binarizer(node: Node) -> str | None:
    """An integer is above a threshold if it is above the floor of the threshold."""
    body, element = Body(node.opset), node.element(0)
    threshold = float(node.attribute("threshold", 0.0))
    if element not in (FLOAT, DOUBLE, INT32, INT64):
        return None
    operator = "Greater"
    if element in (FLOAT, DOUBLE):
        limit = body.cast(body.numbers(threshold), element)
    else:
        limits = np.iinfo(np.int32 if element == INT32 else np.int64)
        least, most = int(limits.min), int(limits.max)
        whole = most if not threshold < most else math.floor(max(threshold, least - 1))
        if whole < least:
            operator, whole = "GreaterOrEqual", least
        limit = body.cast(body.integer(whole), element)
    return body.end(y=body.cast(body(operator, "x", limit), element))


def _feature_extractor(node: Node) -> str | None:
    shape = node.shape(0)
    if not shape:
        return None
    body = Body(node.opset)
    made = body("Gather", "x", body.reshape("places", [-1]), axis=len(shape) - 1)
    return body.end(y=body.reshape(made, [1, -1]) if len(shape) == 1 else made)


def _imputer(node: Node) -> str | None:
    element = node.element(0)
    name = "float" if element in FLOATS else "int64"
    values = node.attribute(f"imputed_value_{name}s")
    replaced = node.attribute(f"replaced_value_{name}")
    if not values or replaced is None or element not in (FLOAT, DOUBLE, INT32, INT64):
        return None
    body = Body(node.opset)
    if name == "float":
        new = body.numbers([[float(one) for one in values]], element)
        is_missing = (
            body("IsNaN", "x")
            if math.isnan(replaced)
            else body("Equal", "x", body.numbers(float(replaced), element))
        )
    else:
        new = body.cast(body.ints(list(values), [1, len(values)]), element)
        is_missing = body("Equal", "x", body.cast(body.integer(replaced), element))
    return body.end(y=body("Where", is_missing, new, "x"))


def _one_hot(node: Node) -> str | None:
    """Lowers OneHotEncoder of integers, in which an unknown category gives a row of zeros."""
    categories, shape = node.attribute("cats_int64s"), node.shape(0)
    if not categories or shape is None or not node.attribute("zeros", 1):
        return None
    if node.element(0) not in (INT32, INT64):
        # onnxruntime rounds floats, and ONNX's reference does not.
        return None
    body = Body(node.opset)
    own = body.unsqueeze(body.cast("x", INT64), len(shape))
    return body.end(y=body.cast(body("Equal", own, body.ints(list(categories))), FLOAT))


def _label_encoder(node: Node) -> str | None:
    """Lowers LabelEncoder from numbers to numbers, which a table lists."""
    (keys, values, default), shape = _table(node), node.shape(0)
    if shape is None or keys is None or values is None or not keys or len(keys) != len(values):
        return None
    if any(one != one for one in keys) or len(set(keys)) < len(keys):
        return None
    body = Body(node.opset)
    element = node.element(0)
    is_integer = isinstance(keys[0], int)
    listed = body.ints(keys) if is_integer else body.numbers(keys)
    hits = body("Equal", body.unsqueeze("x", len(shape)), body.cast(listed, element))
    hits = body.cast(hits, INT64)
    rank = len(shape)
    is_known = body("Equal", body.reduce("ReduceMax", hits, [rank]), body.integer(1))
    place = body("ArgMax", hits, axis=rank, keepdims=0)
    if isinstance(values[0], int):
        table, other = body.ints(values), body.integer(int(default))
    else:
        table, other = body.numbers(values), body.numbers(float(default))
    return body.end(y=body("Where", is_known, body("Gather", table, place, axis=0), other))


def _table(node: Node) -> tuple[list[Any] | None, list[Any] | None, Any]:
    """The keys, the values and the default of a LabelEncoder of numbers."""
    keys = node.attribute("keys_int64s") or node.attribute("keys_floats")
    if values := node.attribute("values_int64s"):
        return list(keys or ()), list(values), node.attribute("default_int64", -1)
    if values := node.attribute("values_floats"):
        return list(keys or ()), list(values), node.attribute("default_float", -0.0)
    return None, None, None


ESTIMATOR_REWRITES = (
    Rewrite("ArrayFeatureExtractor", "(x, places) => (y)", _feature_extractor, DOMAIN),
    Rewrite("Binarizer", "(x) => (y)", _binarizer, DOMAIN),
    Rewrite("Imputer", "(x) => (y)", _imputer, DOMAIN),
    Rewrite("LabelEncoder", "(x) => (y)", _label_encoder, DOMAIN),
    Rewrite("LinearClassifier", "(x) => (y, scores)", _linear_classifier, DOMAIN),
    Rewrite("LinearRegressor", "(x) => (y)", _linear_regressor, DOMAIN),
    Rewrite("Normalizer", "(x) => (y)", _normalizer, DOMAIN),
    Rewrite("OneHotEncoder", "(x) => (y)", _one_hot, DOMAIN),
    Rewrite("Scaler", "(x) => (y)", _scaler, DOMAIN),
)
