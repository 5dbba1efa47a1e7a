"""Rewrites of optimizer steps, for any number of tensors: Adagrad, Adam and Momentum."""

from __future__ import annotations

from collections.abc import Callable

from aotc.frontends.onnx.elements import DOUBLE
from aotc.frontends.onnx.nodes import Node
from aotc.frontends.onnx.rewrites.body import Body, Rewrite

_DOMAIN = "ai.onnx.preview.training"


class _Step:
    """Arithmetic in the element type of one tensor."""

    def __init__(self, node: Node, body: Body, element: int) -> None:
        self._node, self._body, self.element = node, body, element

    def attribute(self, name: str, default: float) -> str:
        return self.number(self._node.attribute(name, default))

    def number(self, value: float) -> str:
        return self._body.cast(self._body.numbers(float(value), DOUBLE), self.element)

    def add(self, one: str, other: str) -> str:
        return self._body("Add", one, other)

    def sub(self, one: str, other: str) -> str:
        return self._body("Sub", one, other)

    def mul(self, one: str, other: str) -> str:
        return self._body("Mul", one, other)

    def div(self, one: str, other: str) -> str:
        return self._body("Div", one, other)

    def sqrt(self, value: str) -> str:
        return self._body("Sqrt", value)


def _adagrad(node: Node, body: Body, step: _Step, x: str, gradient: str, *state: str) -> list[str]:
    (squares,) = state
    count = body.cast("i1", step.element)
    decay = step.add(step.number(1), step.mul(count, step.attribute("decay_factor", 0.0)))
    rate = step.div(body.cast("i0", step.element), decay)
    gradient = step.add(step.mul(step.attribute("norm_coefficient", 0.0), x), gradient)
    squares = step.add(squares, step.mul(gradient, gradient))
    size = step.add(step.sqrt(squares), step.attribute("epsilon", 1e-6))
    return [step.sub(x, step.div(step.mul(rate, gradient), size)), squares]


def _adam(node: Node, body: Body, step: _Step, x: str, gradient: str, *state: str) -> list[str]:
    mean, squares = state
    alpha, beta = step.attribute("alpha", 0.9), step.attribute("beta", 0.999)
    one = step.number(1)
    gradient = step.add(step.mul(step.attribute("norm_coefficient", 0.0), x), gradient)
    mean = step.add(step.mul(alpha, mean), step.mul(step.sub(one, alpha), gradient))
    square = step.mul(gradient, gradient)
    squares = step.add(step.mul(beta, squares), step.mul(step.sub(one, beta), square))
    count = body.cast("i1", step.element)
    rate = body.cast("i0", step.element)
    is_later = body("Greater", count, step.number(0))
    root = step.sqrt(step.sub(one, body("Pow", beta, count)))
    divisor = step.sub(one, body("Pow", alpha, count))
    safe = body("Where", is_later, divisor, one)
    rate = body("Where", is_later, step.div(step.mul(rate, root), safe), rate)
    size = step.add(step.sqrt(squares), step.attribute("epsilon", 1e-6))
    moved = step.sub(x, step.div(step.mul(rate, mean), size))
    kept = step.sub(one, step.attribute("norm_coefficient_post", 0.0))
    return [step.mul(kept, moved), mean, squares]


def _momentum(node: Node, body: Body, step: _Step, x: str, gradient: str, *state: str) -> list[str]:
    (speed,) = state
    alpha = step.attribute("alpha", 0.0)
    gradient = step.add(step.mul(step.attribute("norm_coefficient", 0.0), x), gradient)
    is_later = body("Greater", "i1", body.integer(0))
    beta = body("Where", is_later, step.attribute("beta", 0.0), step.number(1))
    speed = step.add(step.mul(alpha, speed), step.mul(beta, gradient))
    rate = body.cast("i0", step.element)
    way = speed
    if node.attribute("mode", "standard") == "nesterov":
        way = step.add(gradient, step.mul(alpha, speed))
    return [step.sub(x, step.mul(rate, way)), speed]


def _stepped(states: int, one: Callable[..., list[str]]) -> Callable[[Node], str | None]:
    """The body for tensors that have `states` state tensors each."""

    def body_of(node: Node) -> str | None:
        count = (len(node.proto.input) - 2) // (2 + states)
        body = Body(node.opset)
        results = {}
        for index in range(count):
            step = _Step(node, body, node.element(2 + index))
            values = [f"i{2 + index + place * count}" for place in range(2 + states)]
            for place, value in enumerate(one(node, body, step, *values)):
                results[f"y{place * count + index}"] = value
        return body.end(**results)

    return body_of


OPTIMIZER_REWRITES = (
    Rewrite("Adagrad", "(***) => (...)", _stepped(1, _adagrad), _DOMAIN),
    Rewrite("Adam", "(***) => (...)", _stepped(2, _adam), _DOMAIN),
    Rewrite("Momentum", "(***) => (...)", _stepped(1, _momentum), _DOMAIN),
)
