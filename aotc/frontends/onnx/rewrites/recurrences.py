"""Rewrites of GRU, LSTM and RNN that run backward, in terms of ones that run forward."""

from __future__ import annotations

from aotc.frontends.onnx.nodes import Node, known_input
from aotc.frontends.onnx.rewrites.body import Body, Rewrite

_DEFAULTS = {"GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"], "RNN": ["Tanh"]}


def _backward(node: Node) -> str | None:
    """Each direction becomes a forward recurrence. For the backward one, the order of the steps is
    reversed."""
    direction = node.attribute("direction", "forward")
    shape = known_input(node, 0)
    if direction == "forward" or shape is None:
        return None
    body = Body(node.opset)
    layout = node.attribute("layout", 0)
    if layout or (node.has(4) and node.constant(4) is None):
        return None
    parts = []
    for place, one in enumerate(
        ["forward", "reverse"] if direction == "bidirectional" else ["reverse"]
    ):
        parts.append(_directed(node, body, place, one == "reverse", direction == "bidirectional"))
    results = {}
    for place, axis in enumerate((1, 0, 0)[: 3 if node.operator == "LSTM" else 2]):
        found = [part[place] for part in parts]
        results[("y", "y_h", "y_c")[place]] = (
            body("Concat", *found, axis=axis) if len(found) > 1 else found[0]
        )
    return body.end(**results)


def _directed(
    node: Node, body: Body, place: int, is_reversed: bool, is_part: bool
) -> tuple[str, ...]:
    def part(index: int, name: str) -> str:
        if not node.has(index):
            return '""'
        return body.part(name, place, place + 1, 0) if is_part else name

    def turned(value: str) -> str:
        steps = [body.ints([one]) for one in (-1, -(1 << 31), 0, -1)]
        return body("Slice", value, *steps)

    names = ["w", "r", "b", "lengths", "h", "c", "p"]
    given = [turned("x") if is_reversed else "x"]
    last = max(index for index in range(len(node.proto.input)) if node.has(index))
    for index in range(1, last + 1):
        given.append(
            ("lengths" if node.has(4) else '""') if index == 4 else part(index, names[index - 1])
        )
    attributes = {"hidden_size": node.attribute("hidden_size", 0)}
    if node.operator == "GRU":
        attributes["linear_before_reset"] = node.attribute("linear_before_reset", 0)
    if node.operator == "LSTM" and node.attribute("input_forget", 0):
        attributes["input_forget"] = 1
    activations = node.attribute("activations", None)
    count = len(_DEFAULTS[node.operator])
    if activations is not None:
        own = [one.decode() if isinstance(one, bytes) else one for one in activations]
        own = own[place * count : (place + 1) * count]
        if own != _DEFAULTS[node.operator]:
            attributes["activations"] = own
    count = 3 if node.operator == "LSTM" else 2
    made = body.several(count, node.operator, *given, **attributes)
    return (turned(made[0]) if is_reversed else made[0], *made[1:])


RECURRENCE_REWRITES = (
    Rewrite("GRU", "(x, w, r, b, lengths, h) => (y, y_h)", _backward, is_last=True),
    Rewrite("LSTM", "(x, w, r, b, lengths, h, c, p) => (y, y_h, y_c)", _backward, is_last=True),
    Rewrite("RNN", "(x, w, r, b, lengths, h) => (y, y_h)", _backward, is_last=True),
)
