"""GRU, LSTM and RNN of unknown length and batch, in each direction, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

import onnx

import aotc

HIDDEN, WIDTH = 4, 3
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
DIRECTIONS = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def step(operator: str, x: Any, h: Any, c: Any, r: Any, b: Any, is_linear: bool) -> Any:
    """The next state, by ONNX's equations. `x` is the input times its weights, by gate."""
    moved = h @ r.transpose(0, 2, 1) + b[:, None]
    if operator == "RNN":
        return np.tanh(x[0] + moved[0]), c
    if operator == "LSTM":
        i, o, f = sigmoid(x[:3] + moved[:3])
        c = f * c + i * np.tanh(x[3] + moved[3])
        return o * np.tanh(c), c
    z, reset = sigmoid(x[:2] + moved[:2])
    last = reset * moved[2] if is_linear else (reset * h) @ r[2].T + b[2]
    return (1 - z) * np.tanh(x[2] + last) + z * h, c


def expected(operator: str, x: np.ndarray, weights: Any, signs: list[int], is_linear: bool) -> Any:
    found = []
    for sign, w, r, b in zip(signs, *weights, strict=True):
        gates = GATES[operator]
        w, r = w.reshape(gates, HIDDEN, WIDTH), r.reshape(gates, HIDDEN, HIDDEN)
        own, recurrent = b.reshape(2, gates, HIDDEN)
        h = c = np.zeros((x.shape[1], HIDDEN))
        states = []
        for row in x[::sign]:
            h, c = step(
                operator, row @ w.transpose(0, 2, 1) + own[:, None], h, c, r, recurrent, is_linear
            )
            states.append(h)
        found.append(np.stack(states[::sign]))
    return np.stack(found, 1)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    ("operator", "is_linear"), [("GRU", 0), ("GRU", 1), ("LSTM", 0), ("RNN", 0)]
)
def test_any_length_and_batch(
    operator: str, is_linear: int, direction: str, tmp_path: Path
) -> None:
    numbers = np.random.default_rng(5)
    count, rows = len(DIRECTIONS[direction]), GATES[operator] * HIDDEN
    draw: Callable[..., Any] = lambda *shape: numbers.standard_normal(shape).astype(np.float32)  # noqa: E731
    weights = [draw(count, rows, WIDTH), draw(count, rows, HIDDEN), draw(count, 2 * rows)]
    options = {"linear_before_reset": 1} if is_linear else {}
    node = onnx.helper.make_node(
        operator, list("xwrb"), ["y"], hidden_size=HIDDEN, direction=direction, **options
    )
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [value("x", onnx.TensorProto.FLOAT, ["t", "n", WIDTH])],
        [value("y", onnx.TensorProto.FLOAT, ["t", count, "n", HIDDEN])],
        [onnx.numpy_helper.from_array(one, name) for one, name in zip(weights, "wrb", strict=True)],
    )
    opset = onnx.helper.make_opsetid("", 14)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset]), tmp_path / "net.onnx")
    built = aotc.build(tmp_path / "net.onnx", emit="shared", out=f"{tmp_path}/", chips="sm_80")
    library = aotc.load(built)
    library.set_device("cpu")
    for length, batch in ((5, 2), (1, 1), (3, 4)):
        x = draw(length, batch, WIDTH)
        wanted = expected(operator, x, weights, DIRECTIONS[direction], bool(is_linear))
        np.testing.assert_allclose(library["net"](x), wanted, rtol=1e-5, atol=1e-5)
