"""Rewrites of CumSum and CumProd as a Hillis-Steele scan: each step combines elements at twice the
distance of the step before."""

from __future__ import annotations

from aotc.frontends.onnx.elements import INT64
from aotc.frontends.onnx.nodes import Node, known_input
from aotc.frontends.onnx.rewrites.body import Body, Rewrite


def _scan(node: Node) -> str | None:
    given = known_input(node, 0)
    if not given or 0 in given:
        return None
    body = Body(node.opset)
    constant = node.constant(1)
    if constant is not None:
        return body.end(y=_along(node, body, given, int(constant.reshape(-1)[0]) % len(given)))
    rank = len(given)
    axis = body.reshape(body.cast("axis", INT64), [])
    wrapped = body("Add", axis, body.integer(rank))
    axis = body("Where", body("Less", axis, body.integer(0)), wrapped, axis)
    chosen = _along(node, body, given, 0)
    known = body("Equal", axis, body.integer(0))
    for place in range(1, rank):
        is_this = body("Equal", axis, body.integer(place))
        chosen = body("Where", is_this, _along(node, body, given, place), chosen)
        known = body("Or", known, is_this)
    body.expect(known, "the axis is none of the tensor's")
    return body.end(y=chosen)


def _along(node: Node, body: Body, given: tuple[int, ...], axis: int) -> str:
    operator, start = ("Add", 0.0) if node.operator == "CumSum" else ("Mul", 1.0)
    size, value = given[axis], "x"
    neutral = body.cast(body.numbers(start), node.element(0))

    def moved(value: str, by: int) -> str:
        shape = list(given)
        shape[axis] = by
        filler = body("Expand", neutral, body.ints(shape))
        if node.attribute("reverse", 0):
            return body("Concat", body.part(value, by, size, axis), filler, axis=axis)
        return body("Concat", filler, body.part(value, 0, size - by, axis), axis=axis)

    if node.attribute("exclusive", 0):
        value = moved(value, 1) if size > 1 else body("Expand", neutral, body.ints(given))
    step = 1
    while step < size:
        value = body(operator, value, moved(value, step))
        step *= 2
    return value


SCAN_REWRITES = (
    Rewrite("CumProd", "(x, axis) => (y)", _scan, is_last=True),
    Rewrite("CumSum", "(x, axis) => (y)", _scan, is_last=True),
)
