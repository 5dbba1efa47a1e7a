"""Rewrites of GRU, LSTM and RNN that run backward, in terms of ones that run forward; and of GRU
and RNN of unknown length or batch, as a Scan."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from aotc.frontends.onnx.nodes import Node
from aotc.frontends.onnx.rewrites.body import Body, Graph, Rewrite, text_type

_DEFAULTS = {"GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"], "RNN": ["Tanh"]}


def _backward(node: Node) -> str | None:
    """Each direction becomes a forward recurrence. For the backward one, the order of the steps is
    reversed."""
    direction = node.attribute("direction", "forward")
    shape = node.shape(0)
    if shape is None or (direction == "forward" and not _is_scanned(node)):
        return None
    body = Body(node.opset)
    layout = node.attribute("layout", 0)
    if layout or (node.has(4) and node.constant(4) is None):
        return None
    parts = []
    for place, one in enumerate(
        ["forward", "reverse"] if direction == "bidirectional" else [direction]
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
    made = (
        _scanned(node, body, place, given, attributes)
        if _is_scanned(node)
        else body.several(count, node.operator, *given, **attributes)
    )
    return (turned(made[0]) if is_reversed else made[0], *made[1:])


def _is_scanned(node: Node) -> bool:
    return node.operator != "LSTM" and None in (node.shape(0) or ())


def _scanned(
    node: Node, body: Body, place: int, given: list[str], attributes: dict[str, Any]
) -> tuple[str, ...]:
    """A forward GRU or RNN: all steps of the results, and the last one."""
    x, w, r, b, _, initial = [*given, *['""'] * (6 - len(given))]
    hidden = attributes["hidden_size"]
    gates = 3 if node.operator == "GRU" else 1
    element = node.element(0)
    zero = body.numbers(0.0, element)
    turned = [body("Transpose", body.squeeze(one, 0), perm=[1, 0]) for one in (w, r)]
    if b == '""':
        b = body("Expand", zero, body.ints([1, 2 * gates * hidden]))
    ends = (0, gates * hidden, 2 * gates * hidden)
    biases = [body.squeeze(body.part(b, *one, 1), 0) for one in pairwise(ends)]
    inputs = body("Add", body("MatMul", x, turned[0]), biases[0])
    if initial == '""':
        batch = body.part(body("Shape", x), 1, 2, 0)
        sizes = body("Concat", batch, body.ints([hidden]), axis=0)
        start = body("Expand", zero, sizes)
    else:
        start = body.squeeze(initial, 0)
    columns = [
        [body.part(one, i * hidden, (i + 1) * hidden, axis) for i in range(gates)]
        for one, axis in ((turned[1], 1), (biases[1], 0))
    ]
    names = attributes.get("activations", _DEFAULTS[node.operator])
    ones = body.numbers(1.0, element)
    is_linear = bool(attributes.get("linear_before_reset", 0))
    # Names in the graph must not be those of values around it.
    step = Body(node.opset, f"s{place}_")
    row, state = f"row{place}", f"state{place}"
    parts = [step.part(row, i * hidden, (i + 1) * hidden, 1) for i in range(gates)]

    def moved(value: str, gate: int) -> str:
        return step("Add", step("MatMul", value, columns[0][gate]), columns[1][gate])

    if node.operator == "RNN":
        after = step(names[0], step("Add", parts[0], moved(state, 0)))
    else:
        update, reset = (
            step(names[0], step("Add", parts[gate], moved(state, gate))) for gate in range(2)
        )
        last = (
            step("Mul", reset, moved(state, 2))
            if is_linear
            else moved(step("Mul", reset, state), 2)
        )
        new = step(names[1], step("Add", parts[2], last))
        kept = step("Mul", update, state)
        after = step("Add", step("Mul", step("Sub", ones, update), new), kept)
    results = {f"after{place}": after, f"made{place}": after}
    kind = text_type(element)
    graph = Graph(
        f"step{place} ({kind}[n, {hidden}] {state}, {kind}[n, {gates * hidden}] {row}) => "
        f"({', '.join(f'{kind}[n, {hidden}] {name}' for name in results)}) "
        f"{{\n{step.end(**results)}\n}}"
    )
    final, rows = body.several(2, "Scan", start, inputs, num_scan_inputs=1, body=graph)
    return body.unsqueeze(rows, 1), body.unsqueeze(final, 0)


RECURRENCE_REWRITES = (
    Rewrite("GRU", "(x, w, r, b, lengths, h) => (y, y_h)", _backward, is_last=True),
    Rewrite("LSTM", "(x, w, r, b, lengths, h, c, p) => (y, y_h, y_c)", _backward, is_last=True),
    Rewrite("RNN", "(x, w, r, b, lengths, h) => (y, y_h)", _backward, is_last=True),
)
