"""MatMul of a vector and a batch, and Range."""

from __future__ import annotations

from aotc.frontends.onnx.elements import BFLOAT16, FLOAT, FLOAT16
from aotc.frontends.onnx.nodes import Node, known_result
from aotc.frontends.onnx.rewrites.body import Body, Rewrite, scalar

# The rank of a matrix.
_MATRIX = 2


# The opset in which the axes of Squeeze and Unsqueeze are an input first.
_FIRST_AXES_INPUT = 13


def _vector_product(node: Node) -> str | None:
    """torch-mlir has no products of a vector and a batch of matrices."""
    left, right = node.shape(0), node.shape(1)
    if left is None or right is None or node.opset < _FIRST_AXES_INPUT:
        return None
    ranks = len(left), len(right)
    if min(ranks) != 1 or max(ranks) <= _MATRIX:
        return None
    body = Body(node.opset)
    one, other, axis = "a", "b", -2
    if len(left) == 1:
        one = body("Unsqueeze", "a", body.ints([0]))
    else:
        other, axis = body("Unsqueeze", "b", body.ints([1])), -1
    made = body("MatMul", one, other)
    return body.end(y=body("Squeeze", made, body.ints([axis])))


def _range(node: Node) -> str | None:
    """torch-mlir has no tensor for limits that no step leads to."""
    if all(node.constant(index) is not None for index in range(3)):
        return None
    return "\n".join(
        [
            scalar("zero", 0, node.element(0)),
            "is_up = Less (start, limit)",
            "steps_up = Less (zero, delta)",
            "is_down = Less (limit, start)",
            "steps_down = Less (delta, zero)",
            "goes_up = And (is_up, steps_up)",
            "goes_down = And (is_down, steps_down)",
            "goes = Or (goes_up, goes_down)",
            "end = Where (goes, limit, start)",
            "y = Range (start, end, delta)",
        ]
    )


def _narrow_range(node: Node) -> str | None:
    """Of floats of 16 bits, in f32."""
    made = known_result(node)
    if made is None or node.element(0) not in (FLOAT16, BFLOAT16):
        return None
    body = Body(node.opset)
    start, limit, delta = (body.cast(name, FLOAT) for name in ("start", "limit", "delta"))
    count = body("Ceil", body("Div", body("Sub", limit, start), delta))
    size = body("Max", count, body.numbers(0.0))
    body.expect(
        body("Equal", size, body.numbers(float(made[0]))),
        "the limits do not lead to the result's size",
    )
    steps = body.numbers([float(step) for step in range(made[0])])
    return body.end(y=body.cast(body("Add", start, body("Mul", steps, delta)), node.element(0)))


ARITHMETIC_REWRITES = (
    Rewrite("MatMul", "(a, b) => (y)", _vector_product, is_last=True),
    Rewrite("Range", "(start, limit, delta) => (y)", _narrow_range, is_last=True),
    Rewrite("Range", "(start, limit, delta) => (y)", _range),
)
