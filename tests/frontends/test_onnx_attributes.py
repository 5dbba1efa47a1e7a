"""Attributes of ONNX's nodes that torch-mlir has wrong or not at all, or that onnx infers other
sizes for: one library has them all, and is compared with onnx's own evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

import aotc
from aotc.errors import InputError

OPSET = 20
FLOAT = 1


class Model:
    """Nodes of one input x, 2 x 4 x 5 x 6, whose results have no declared shape."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: dict[str, Any] = {}
        self.results: list[str] = []
        self._random = np.random.default_rng(0)

    def constant(self, value: Any) -> str:
        name = f"c{len(self.weights)}"
        self.weights[name] = np.asarray(value)
        return name

    def normal(self, *shape: int) -> str:
        return self.constant(self._random.standard_normal(shape).astype(np.float32))

    def signed_bytes(self, *shape: int) -> str:
        return self.constant(self._random.integers(-128, 128, shape).astype(np.int8))

    def value(self, operator: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        name = f"y{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def result(self, operator: str, *inputs: str, **attributes: Any) -> None:
        self.results.append(self.value(operator, *inputs, **attributes))

    def proto(self) -> Any:
        from onnx import helper, numpy_helper

        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info("x", FLOAT, [2, 4, 5, 6])],
            [helper.make_tensor_value_info(name, FLOAT, None) for name in self.results],
            [numpy_helper.from_array(value, name) for name, value in self.weights.items()],
        )
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=9)

    def build(self, folder: Path) -> Any:
        import onnx

        path = folder / "net.onnx"
        onnx.save(self.proto(), path)
        return aotc.build(path, emit="shared", out=f"{folder}/", chips="sm_80", optimization=1)


def _ints(model: Model, *values: int) -> str:
    return model.constant(np.array(values, np.int64))


def _model() -> Model:
    model = Model()
    result, normal = model.result, model.normal
    row = model.value("Reshape", "x", _ints(model, 240))
    line = model.value("Reshape", "x", _ints(model, 2, 4, 30))
    result(
        "Resize",
        "x",
        "",
        model.constant(np.array([3, 2], np.float32)),
        axes=[3, 2],
        mode="linear",
        coordinate_transformation_mode="align_corners",
    )
    volume = model.value("Reshape", "x", _ints(model, 2, 4, 5, 3, 2))
    result("Pad", "x", _ints(model, 1, 0, 2, 1, 0, 3, 1, 0), mode="edge")
    result("Pad", row, _ints(model, 2, 1), mode="reflect")
    # Windows that would begin behind the padding.
    result("MaxPool", "x", kernel_shape=[1, 2], strides=[2, 4], pads=[0, 1, 0, 1], ceil_mode=1)
    result("MaxPool", "x", kernel_shape=[2, 1], strides=[3, 5], ceil_mode=1, pads=[1, 0, 1, 0])
    result(
        "Conv", volume, normal(4, 1, 3, 2, 1), group=4, pads=[1, 0, 0, 1, 1, 0], strides=[2, 1, 1]
    )
    scale, zero = model.constant(np.float32(0.05)), model.constant(np.int8(3))
    for values, weights, group in ((line, (6, 4, 3), 1), ("x", (4, 2, 2, 3), 2)):
        quantized = model.value("QuantizeLinear", values, scale, zero)
        filters = model.signed_bytes(*weights)
        own = model.constant(np.float32(0.01)), model.constant(np.int8(0))
        given = (quantized, scale, zero, filters, *own, scale, zero)
        made = model.value("QLinearConv", *given, group=group)
        result("Cast", made, to=FLOAT)
    whole = model.value("Cast", model.value("Mul", "x", normal(1)), to=6)
    power = model.value("Pow", whole, model.constant(np.int32(3)))
    result("Cast", power, to=FLOAT)
    region = model.constant(np.array([0, 0, 0.1, 0.2, 1, 1, 0.8, 0.7], np.float32))
    result(
        "Resize",
        "x",
        region,
        model.constant(np.array([1, 1, 1.6, 1], np.float32)),
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
    )
    return model


def _results(artifact: Any, x: Any) -> Any:
    library = aotc.load(artifact)
    library.set_device("cpu")
    results = library["net"](x)
    return results if isinstance(results, tuple) else (results,)


def test_attributes(tmp_path: Path) -> None:
    from onnx.reference import ReferenceEvaluator

    model = _model()
    x = np.random.default_rng(1).standard_normal((2, 4, 5, 6)).astype(np.float32)
    expected = ReferenceEvaluator(model.proto()).run(None, {"x": x})
    results = _results(model.build(tmp_path), x)
    for result, one, name in zip(results, expected, model.results, strict=True):
        np.testing.assert_allclose(result, one, rtol=1e-5, atol=1e-5, err_msg=name)


def test_many_pools_have_their_sizes() -> None:
    """Each is rewritten by itself, however many there are."""
    from aotc.frontends.onnx.preparation import prepare

    model = Model()
    for _ in range(18):
        model.result(
            "MaxPool", "x", kernel_shape=[1, 2], strides=[2, 4], pads=[0, 1] * 2, ceil_mode=1
        )
    prepared = prepare(model.proto())
    for value in prepared.graph.output:
        sizes = [size.dim_value for size in value.type.tensor_type.shape.dim]
        assert sizes == [2, 4, 3, 2], value.name


@pytest.mark.parametrize("has_sizes", [False, True])
def test_short_time_transforms_are_onesided_by_default(has_sizes: bool, tmp_path: Path) -> None:
    """onnx infers the sizes of two-sided ones, which the file may have."""
    from onnx.shape_inference import infer_shapes

    model = Model()
    signal = model.value("Reshape", "x", _ints(model, 2, 120, 1))
    window = model.constant(np.hanning(16).astype(np.float32))
    frames = model.value("STFT", signal, model.constant(np.array(8)), window)
    model.result("ReduceL2", frames, _ints(model, -1), keepdims=0)
    proto = model.proto()
    if has_sizes:
        inferred = infer_shapes(proto)
        proto.graph.value_info.extend(inferred.graph.value_info)
    path = tmp_path / "net.onnx"
    path.write_bytes(proto.SerializeToString())
    built = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips="sm_80", optimization=1)
    x = np.random.default_rng(1).standard_normal((2, 4, 5, 6)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x.reshape(2, 120), 16, axis=1)[:, ::8]
    expected = np.abs(np.fft.rfft(windows * np.hanning(16)))
    np.testing.assert_allclose(aotc.load(built).net(x), expected, rtol=1e-4, atol=1e-5)


def _transposed(x: Any, weights: Any, begins: tuple[int, int], sizes: tuple[int, int]) -> Any:
    """Each group by itself, with strides of 2 and 1: all that the windows reach, then a part."""
    count, _, height, width = x.shape
    groups, (rows, columns) = 2, weights.shape[2:]
    whole = np.zeros((count, groups, 2 * height + rows - 2, width + columns - 1), np.float32)
    for group, (part, filters) in enumerate(
        zip(np.split(x, groups, 1), np.split(weights, groups), strict=True)
    ):
        for i in range(rows):
            for j in range(columns):
                made = np.einsum("nchw,c->nhw", part, filters[:, 0, i, j])
                whole[:, group, i : i + 2 * height - 1 : 2, j : j + width] += made
    (top, left), (tall, wide) = begins, sizes
    return whole[:, :, top : top + tall, left : left + wide]


def test_padded_groups_and_norms_of_windows(tmp_path: Path) -> None:
    model = Model()
    weights = [model.normal(4, 1, 3, 2) for _ in range(3)]
    cases: list[tuple[dict[str, Any], tuple[int, int], tuple[int, int]]] = [
        ({"pads": [1, 0, 2, 1]}, (1, 0), (8, 6)),
        ({"output_shape": [10, 6]}, (1, 1), (10, 6)),
        ({"auto_pad": "SAME_LOWER"}, (1, 1), (10, 6)),
    ]
    for name, (attributes, _, _) in zip(weights, cases, strict=True):
        model.result("ConvTranspose", "x", name, strides=[2, 1], group=2, **attributes)
    model.result("LpPool", "x", kernel_shape=[2, 3], strides=[3, 2], ceil_mode=1, p=3)
    x = np.random.default_rng(1).standard_normal((2, 4, 5, 6)).astype(np.float32)
    *results, norms = _results(model.build(tmp_path), x)
    # What the last window has behind the image is 0.
    cubes = np.pad(np.abs(x) ** 3, ((0, 0), (0, 0), (0, 0), (0, 1)))
    sums = sum(cubes[:, :, i : i + 4 : 3, j : j + 5 : 2] for i in range(2) for j in range(3))
    np.testing.assert_allclose(norms, np.cbrt(sums), rtol=1e-5)
    for result, name, (_, begins, sizes) in zip(results, weights, cases, strict=True):
        expected = _transposed(x, model.weights[name], begins, sizes)
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_batch_norms_are_a_product_and_a_sum(tmp_path: Path) -> None:
    """Of two constants for each channel."""
    numbers = np.random.default_rng(1)
    model = Model()
    scale, bias, mean, variance = (numbers.random(4, np.float32) + 0.5 for _ in range(4))
    names = [model.constant(value) for value in (scale, bias, mean, variance)]
    model.result("BatchNormalization", "x", *names, epsilon=0.01)
    x = numbers.standard_normal((2, 4, 5, 6)).astype(np.float32)
    (result,) = _results(model.build(tmp_path), x)
    text = aotc.build(tmp_path / "net.onnx", emit="mlir", out=tmp_path / "x.mlir", chips="sm_80")
    words = text.path.read_text().split()
    assert [words.count(f"arith.{name}f") for name in ("mul", "add", "sub")] == [1, 1, 0]
    along = (-1, 1, 1)
    normal = (x - mean.reshape(along)) / np.sqrt(variance + 0.01).reshape(along)
    expected = normal * scale.reshape(along) + bias.reshape(along)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_negative_pads_cut(tmp_path: Path) -> None:
    """What is left is padded by the others, whatever the mode is."""
    model = Model()
    modes = ("constant", "edge", "reflect", "wrap")
    for mode in modes:
        model.result("Pad", "x", _ints(model, 0, -1, -2, 3, 0, 2, 1, -1), mode=mode)
    pads, empty = _ints(model, 2, -1, -1, 0), ""
    model.result("Pad", "x", pads, empty, _ints(model, -1, 1), mode="edge")
    x = np.random.default_rng(1).standard_normal((2, 4, 5, 6)).astype(np.float32)
    *results, last = _results(model.build(tmp_path), x)
    left = x[:, 1:, 2:, :-1]
    for mode, result in zip(modes, results, strict=True):
        widths = ((0, 0), (0, 2), (0, 1), (3, 0))
        np.testing.assert_array_equal(result, np.pad(left, widths, mode=mode))  # type: ignore[call-overload]
    cut = x[:, 1:, :, :-1]
    np.testing.assert_array_equal(last, np.pad(cut, ((0, 0), (0, 0), (0, 0), (2, 0)), mode="edge"))


def test_other_activations_are_refused(tmp_path: Path) -> None:
    """torch-mlir takes others for them."""
    model = Model()
    steps = model.value("Reshape", "x", _ints(model, 10, 4, 6))
    weights = model.normal(1, 9, 6), model.normal(1, 9, 3)
    activations = ["HardSigmoid", "Tanh"]
    model.result("GRU", steps, *weights, hidden_size=3, activations=activations)
    with pytest.raises(InputError, match=r"onnx\.GRU: activations other than Sigmoid, Tanh and"):
        model.build(tmp_path)
