"""Layers of quantized networks, whose products and functions are of bytes, on the CPU device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

from onnx import helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import aotc  # noqa: E402

CHIPS = ("sm_90a",)
DYNAMIC = {
    "of lines": ((64, 16, 3), np.int8, (1, 16, 200), {"pads": [1, 2]}),
    "of unsigned weights": ((32, 16, 3, 3), np.uint8, (1, 16, 20, 24), {"pads": [1, 1, 0, 1]}),
    "of large sums": ((16, 300, 3, 3), np.int8, (1, 300, 9, 11), {"pads": [1, 1, 1, 1]}),
}
_QUANTIZED = """<ir_version: 9, opset_import: ["": 19]>
net (float[{shape}] x) => (float[{result}] y)
<float s = {{0.02}}, uint8 z = {{117}}, float t = {{0.01}}, uint8 u = {{3}}>
{{
  q = QuantizeLinear (x, s, z)
  d = DequantizeLinear (q, s, z)
{body}
  r = QuantizeLinear (made, t, u)
  y = DequantizeLinear (r, t, u)
}}"""
_ATTENTION = """  turned = Transpose <perm = [0, 2, 1]> (d)
  made = MatMul (d, turned)"""
_GELU = """  half = Constant <value = float {0.5}> ()
  one = Constant <value = float {1.0}> ()
  root = Constant <value = float {1.41421356}> ()
  scaled = Div (d, root)
  erf = Erf (scaled)
  more = Add (erf, one)
  both = Mul (d, more)
  made = Mul (both, half)"""


def built(model: Any, folder: Path) -> tuple[Any, set[str]]:
    """The entry on the CPU device, and the names of the kernels."""
    file = folder / "net.onnx"
    file.write_bytes(model.SerializeToString())
    artifact = aotc.build(file, emit="shared", out=f"{folder}/", chips=CHIPS)
    library = aotc.load(artifact)
    library.set_device("cpu")
    return library["net"], {kernel.name for kernel in artifact.manifest.kernels}


def quantized(body: str, shape: str, result: str) -> Any:
    text = _QUANTIZED.format(body=body, shape=shape, result=result)
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize("name", DYNAMIC)
def test_convolutions_whose_zero_point_is_computed(name: str, tmp_path: Path) -> None:
    """The sums of integers are exact, and computed by kernels for integers."""
    filters, kind, shape, options = DYNAMIC[name]
    generator, limits = np.random.default_rng(0), np.iinfo(kind)
    weights = generator.integers(limits.min, limits.max + 1, filters).astype(kind)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("ConvInteger", ["q", "w", "z"], ["y"], **options),
    ]
    x = generator.standard_normal(shape).astype(np.float32)

    def model(result: Any) -> Any:
        graph = helper.make_graph(
            nodes,
            "net",
            [helper.make_tensor_value_info("x", 1, shape)],
            [helper.make_tensor_value_info("y", 6, result)],
            [numpy_helper.from_array(weights, "w")],
        )
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8)

    (expected,) = ReferenceEvaluator(model(None)).run(None, {"x": x})
    function, kernels = built(model(list(expected.shape)), tmp_path)
    np.testing.assert_array_equal(function(x), expected)
    assert any(name.startswith(("implicit_gemm_i", "matmul_i")) for name in kernels)


def test_a_product_of_matrices_that_are_computed(tmp_path: Path) -> None:
    """As of attention: bytes are multiplied, and the zero points are subtracted from the sums."""
    model = quantized(_ATTENTION, "3, 40, 70", "3, 40, 40")
    x = np.random.default_rng(0).uniform(-3, 3, (3, 40, 70)).astype(np.float32)
    function, kernels = built(model, tmp_path)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    # Sums of integers are exact, those of floats are not: a step where one is between two.
    steps = np.abs(np.rint((function(x) - expected) / np.float32(0.01)))
    assert steps.max() <= 1
    assert np.mean(steps) < 1e-2
    # With what follows, although the kernels for GPUs are without.
    assert any(name.startswith("batched_matmul_i8_f32") for name in kernels)


def test_a_function_of_bytes(tmp_path: Path) -> None:
    """It is looked up, and its values are those that a program of few elements computes."""
    model = quantized(_GELU, "150, 256", "150, 256")
    few = quantized(_GELU, "1, 256", "1, 256")
    x = ((np.arange(150 * 256) % 256 - 117) * np.float32(0.02)).astype(np.float32)
    x = x.reshape(150, 256)
    for folder in ("many", "few"):
        (tmp_path / folder).mkdir()
    function, _ = built(model, tmp_path / "many")
    plain, _ = built(few, tmp_path / "few")
    found = function(x)
    np.testing.assert_array_equal(found, np.repeat(plain(x[:1]), 150, 0))
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    steps = np.abs(np.rint((found - expected) / np.float32(0.01)))
    assert steps.max() <= 1
    assert np.mean(steps) < 1e-2


def test_quantized_nan_is_a_byte(tmp_path: Path) -> None:
    """The least one, as in ONNX Runtime: also where bytes are computed with and not stored."""
    function, _ = built(quantized("  made = Identity (d)", "64", "64"), tmp_path)
    x = np.full(64, np.nan, np.float32)
    # d is (0 - 117) * 0.02, which is less than y's least byte.
    np.testing.assert_array_equal(function(x), np.full(64, np.float32(-0.03)))


@pytest.mark.parametrize("pads", [[1, 1, 1, 1], [0, 0, 2, 2]], ids=["around", "behind"])
def test_pools_of_bytes(pads: list[int], tmp_path: Path) -> None:
    """Between layers of one scale they have the values that floats have, also below zero."""
    pool = f"  made = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = {pads}> (d)"
    text = quantized(pool, "1, 5, 20, 24", "1, 5, 10, 12")
    model = onnx.parser.parse_model(
        onnx.printer.to_text(text).replace("(made, t, u)", "(made, s, z)")
    )
    x = np.random.default_rng(0).uniform(-3, -1, (1, 5, 20, 24)).astype(np.float32)
    function, _ = built(model, tmp_path)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(function(x), expected)


def test_padding_on_one_side(tmp_path: Path) -> None:
    """It is the zero point, which is above 127 here."""
    weights = np.random.default_rng(1).integers(-128, 128, (16, 3, 3, 3)).astype(np.int8)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["v", "t", "u"], ["w"]),
        helper.make_node("Conv", ["d", "w"], ["y"], strides=[2, 2], pads=[0, 0, 1, 1]),
    ]
    constants = {
        "s": np.float32(0.03),
        "z": np.uint8(193),
        "v": weights,
        "t": np.float32(0.001),
        "u": np.int8(0),
    }
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", 1, [1, 3, 12, 20])],
        [helper.make_tensor_value_info("y", 1, [1, 16, 6, 10])],
        [numpy_helper.from_array(np.asarray(one), name) for name, one in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    x = np.random.default_rng(0).standard_normal((1, 3, 12, 20)).astype(np.float32)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    function, _ = built(model, tmp_path)
    np.testing.assert_allclose(function(x), expected, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 16])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_one_scale_is_as_many_equal_ones(kind: Any, groups: int, tmp_path: Path) -> None:
    """A filter with one scale gives the bits, by the kernels, of one with a scale by channel."""
    channels = 16
    generator = np.random.default_rng(0)
    filters = generator.integers(-127, 128, (channels, channels // groups, 3, 3)).astype(np.int8)
    x = generator.normal(size=(1, channels, 13, 14)).astype(np.float32)
    results, kernels = [], []
    for count in ((), (channels,)):
        axis = {"axis": 0} if count else {}
        constants = {
            "w": filters,
            "ws": np.full(count, 0.01, np.float32),
            "wz": np.zeros(count, np.int8),
            "b": np.arange(-80, 80, 10, np.int32),
            "bs": np.full(count, 0.0002, np.float32),
            "bz": np.zeros(count, np.int32),
            "s": np.float32(0.02),
            "z": np.array(3, kind),
            "t": np.float32(0.05),
        }
        nodes = [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
            helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["f"], **axis),
            helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["c"], **axis),
            helper.make_node("Conv", ["d", "f", "c"], ["m"], group=groups, pads=[1, 1, 1, 1]),
            helper.make_node("QuantizeLinear", ["m", "t", "z"], ["r"]),
            helper.make_node("DequantizeLinear", ["r", "t", "z"], ["y"]),
        ]
        shape = list(x.shape)
        graph = helper.make_graph(
            nodes,
            "net",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, shape)],
            [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
        folder = tmp_path / f"{len(count)}"
        folder.mkdir()
        entry, names = built(model, folder)
        results.append(entry(x))
        kernels.append(names)
    np.testing.assert_array_equal(*results)
    assert kernels[0] == kernels[1]


@pytest.mark.parametrize("name", ["conv", "matmul"])
def test_operators_before_there_was_round(name: str, tmp_path: Path) -> None:
    """Opset 10 has QLinearConv and QLinearMatMul, and no Round to compute them with."""
    generator = np.random.default_rng(0)
    shapes = {"conv": ((2, 1, 7, 7), (1, 1, 3, 3)), "matmul": ((2, 5, 7), (2, 7, 3))}[name]
    x, w = (generator.integers(0, 256, shape).astype(np.uint8) for shape in shapes)
    constants: dict[str, Any] = {
        "w": w,
        **{f"{key}s": np.float32(value) for key, value in {"x": 0.02, "w": 0.03, "y": 0.9}.items()},
        **{f"{key}z": np.uint8(value) for key, value in {"x": 117, "w": 100, "y": 128}.items()},
    }
    operator = "QLinearConv" if name == "conv" else "QLinearMatMul"
    inputs = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
    wide = [value.astype(np.float64) - zero for value, zero in ((x, 117), (w, 100))]
    if name == "conv":
        windows = np.lib.stride_tricks.sliding_window_view(wide[0], (3, 3), (2, 3))
        sums = (windows * wide[1][0, 0]).sum((-2, -1))
    else:
        sums = wide[0] @ wide[1]
    expected = np.clip(np.round(sums * 0.02 * 0.03 / 0.9) + 128, 0, 255).astype(np.uint8)
    graph = helper.make_graph(
        [helper.make_node(operator, inputs, ["y"])],
        "net",
        [helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, x.shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.UINT8, expected.shape)],
        [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()],
    )
    opset = helper.make_opsetid("", 10)
    entry, _ = built(helper.make_model(graph, opset_imports=[opset], ir_version=5), tmp_path)
    np.testing.assert_array_equal(entry(x), expected)


@pytest.mark.parametrize("zero", [117, 0, 255])
@pytest.mark.parametrize(
    "attributes",
    [
        {"pads": [1, 1, 1, 1]},
        {"pads": [1, 0, 1, 2], "strides": [2, 2]},
        {"pads": [2, 1, 0, 0], "strides": [3, 3], "dilations": [2, 1]},
    ],
    ids=["1", "2", "3"],
)
def test_depthwise_convolutions_of_bytes(
    attributes: dict[str, Any], zero: int, tmp_path: Path
) -> None:
    """Bytes are read less their zero point, and results are at most a step from exact sums."""
    channels, generator = 24, np.random.default_rng(zero)
    x = generator.integers(0, 256, (1, channels, 21, 19), dtype=np.uint8)
    w = generator.integers(-127, 128, (channels, 1, 3, 3), dtype=np.int8)
    scales = generator.uniform(0.001, 0.003, channels).astype(np.float32)
    bias = generator.integers(-9000, 9000, channels, dtype=np.int32)
    values = {"w": w, "t": scales, "v": np.zeros(channels, np.int8), "n": bias}
    values |= {"s": np.float32(0.02), "z": np.uint8(zero), "r": np.float32(0.11)}
    values |= {"u": np.uint8(121), "st": scales * np.float32(0.02), "o": np.zeros(channels, "i4")}
    make = helper.make_node
    nodes = [
        make("DequantizeLinear", ["q", "s", "z"], ["x"]),
        make("DequantizeLinear", ["w", "t", "v"], ["f"], axis=0),
        make("DequantizeLinear", ["n", "st", "o"], ["b"], axis=0),
        make("Conv", ["x", "f", "b"], ["c"], group=channels, **attributes),
        make("QuantizeLinear", ["c", "r", "u"], ["y"]),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "net",
        [info("q", onnx.TensorProto.UINT8, x.shape)],
        [info("y", onnx.TensorProto.UINT8, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    model = onnx.shape_inference.infer_shapes(model)
    net, kernels = built(model, tmp_path)
    [expected] = ReferenceEvaluator(model).run(None, {"q": x})
    steps = np.abs(net(x).astype(int) - expected.astype(int))
    assert steps.max() <= 1
    assert (steps != 0).mean() < 0.001
    assert any(name.startswith("depthwise_conv_i8_cpu") for name in kernels), kernels


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_a_pool_of_bytes_alone(kind: Any, tmp_path: Path) -> None:
    """It leaves the rounding to the convolution before it, as pools between scales do."""
    rng, least = np.random.default_rng(0), np.iinfo(kind).min
    values = {"w": rng.integers(-127, 128, (16, 8, 3, 3), dtype=np.int8), "v": np.int8(0)}
    values |= {"s": np.float32(0.02), "t": np.float32(0.01), "r": np.float32(0.3)}
    values |= {"z": kind(least + 70), "u": kind(least + 100)}
    nodes = [
        helper.make_node("QLinearConv", ["x", "s", "z", "w", "t", "v", "r", "u"], ["c"]),
        helper.make_node("MaxPool", ["c"], ["y"], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    ]
    x = rng.integers(least, least + 256, (1, 8, 30, 30)).astype(kind)
    info, type_ = helper.make_tensor_value_info, helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    graph = helper.make_graph(
        nodes,
        "net",
        [info("x", type_, x.shape)],
        [info("y", type_, [1, 16, 14, 14])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )
    opset = helper.make_opsetid("", 17)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    function, kernels = built(model, tmp_path)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    found = function(x)
    assert found.dtype == expected.dtype
    assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1
    products = [name for name in kernels if "gemm" in name and "_cpu" in name]
    assert products
    assert all("i8_cpu" in name and "epilogue" in name for name in products), products
