"""Operators of com.microsoft, against ONNX Runtime, which defines them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="ONNX is not installed: pip install 'aotc[onnx]'")
runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
from onnx import helper, numpy_helper  # noqa: E402

import aotc  # noqa: E402

# The scales and zero points of the operands and of the result.
NUMBERS = {
    "s": np.float32(0.02),
    "z": np.uint8(131),
    "t": np.float32(0.03),
    "v": np.uint8(7),
    "r": np.float32(0.05),
    "u": np.uint8(90),
    "p": np.float32(1 / 256),
    "o": np.uint8(0),
}
BYTES, SHAPE = np.uint8, (2, 12, 9, 7)
X, Y, RESULT = ["x", "s", "z"], ["y", "t", "v"], ["r", "u"]
# Operator → its inputs and attributes.
CASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "QLinearAdd": ([*X, *Y, *RESULT], {}),
    "QLinearMul": ([*X, *Y, *RESULT], {}),
    "QLinearConcat": ([*RESULT, *X, *Y], {"axis": 1}),
    "QLinearSigmoid": ([*X, "p", "o"], {}),
    "QLinearLeakyRelu": ([*X, *RESULT], {"alpha": 0.2}),
    "QLinearSoftmax": ([*X, "p", "o"], {"opset": 13, "axis": -1}),
    "QLinearGlobalAveragePool": ([*X, *RESULT], {"channels_last": 0}),
    "QLinearAveragePool": (
        [*X, *RESULT],
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    ),
    "QLinearWhere": (["c", *X, *Y, *RESULT], {}),
}


def model_of(operator: str, inputs: list[str], given: Any, weights: Any, options: Any) -> Any:
    """A model of one node, between two others that have no types of their own."""
    info, type_of = helper.make_tensor_value_info, helper.np_dtype_to_tensor_dtype
    renamed = ["x_copy" if name == "x" else name for name in inputs]
    nodes = [
        helper.make_node("Identity", ["x"], ["x_copy"]),
        helper.make_node(operator, renamed, ["made"], domain="com.microsoft", **options),
        helper.make_node("Identity", ["made"], ["result"]),
    ]
    used = {name: value for name, value in weights.items() if name in inputs}
    graph = helper.make_graph(
        nodes,
        "net",
        [info(name, type_of(value.dtype), value.shape) for name, value in given.items()],
        [helper.make_empty_tensor_value_info("result")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in used.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def compared(model: Any, given: dict[str, Any], folder: Path) -> tuple[Any, Any]:
    """What aotc and ONNX Runtime compute."""
    session = runtime.InferenceSession(model.SerializeToString())
    [expected] = session.run(None, given)
    element = helper.np_dtype_to_tensor_dtype(expected.dtype)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("result", element, expected.shape))
    onnx.save(model, folder / "net.onnx")
    artifact = aotc.build(folder / "net.onnx", emit="shared", out=f"{folder}/", chips="sm_80")
    library = aotc.load(artifact.path)
    library.set_device("cpu")
    return library.net(*given.values()), expected


def steps(found: Any, expected: Any) -> Any:
    assert found.dtype == expected.dtype
    return np.abs(found.astype(int) - expected.astype(int))


@pytest.mark.parametrize("operator", CASES)
def test_quantized_operators(operator: str, tmp_path: Path) -> None:
    """A result differs by one step if rounding decides between two."""
    inputs, options = CASES[operator]
    rng = np.random.default_rng(0)
    given = {name: rng.integers(0, 256, SHAPE).astype(BYTES) for name in ("x", "y")}
    given |= {"c": rng.integers(0, 2, SHAPE).astype(bool)}
    given = {name: value for name, value in given.items() if name in inputs}
    model = model_of(operator, inputs, given, NUMBERS, options)
    difference = steps(*compared(model, given, tmp_path))
    assert difference.max() <= 1
    assert (difference != 0).mean() < 0.02


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("is_float", [False, True])
def test_gemm(transposed: int, is_float: bool, tmp_path: Path) -> None:
    """With a scale for each column, a bias of 32 bits, and a result of bytes or floats."""
    rng = np.random.default_rng(0)
    shape = (40, 70) if transposed else (70, 40)
    weights = NUMBERS | {
        "b": rng.integers(-127, 128, shape).astype(np.int8),
        "t": rng.uniform(0.01, 0.02, 40).astype(np.float32),
        "v": np.zeros(40, np.int8),
        "n": rng.integers(-20000, 20000, 40).astype(np.int32),
        "r": np.float32(0.5),
    }
    given = {"x": rng.integers(0, 256, (20, 70)).astype(BYTES)}
    inputs = [*X, "b", "t", "v", "n", *([] if is_float else RESULT)]
    model = model_of("QGemm", inputs, given, weights, {"transB": transposed, "alpha": 0.5})
    found, expected = compared(model, given, tmp_path)
    if is_float:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
    else:
        assert steps(found, expected).max() <= 1
        assert (found != expected).mean() < 0.01


@pytest.mark.parametrize("zero", [False, True])
def test_products_of_floats_and_bytes(zero: bool, tmp_path: Path) -> None:
    """DynamicQuantizeMatMul, and MatMulIntegerToFloat with the zero point of B alone."""
    rng = np.random.default_rng(0)
    weights = NUMBERS | {
        "b": rng.integers(0, 256, (70, 40)).astype(BYTES),
        "n": rng.standard_normal(40).astype(np.float32),
    }
    floats = {"x": rng.standard_normal((20, 70)).astype(np.float32)}
    inputs = ["x", "b", "t", "v" if zero else "", "n"]
    model = model_of("DynamicQuantizeMatMul", inputs, floats, weights, {})
    found, expected = compared(model, floats, tmp_path)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
    bytes_ = {"x": rng.integers(0, 256, (20, 70)).astype(BYTES)}
    inputs = ["x", "b", "s", "t", "z" if zero else "", "v", "n"]
    model = model_of("MatMulIntegerToFloat", inputs, bytes_, weights, {})
    (tmp_path / "other").mkdir()
    found, expected = compared(model, bytes_, tmp_path / "other")
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize(
    ("bits", "rows", "opset", "zeros"),
    [
        (4, 256, 21, "none"),
        (4, 256, 21, "packed"),
        (4, 256, 21, "an input"),
        (4, 256, 21, "floats"),
        (4, 250, 17, "packed"),
        (2, 256, 18, "packed"),
        (8, 256, 18, "none"),
    ],
)
def test_weights_of_few_bits(bits: int, rows: int, opset: int, zeros: str, tmp_path: Path) -> None:
    """MatMulNBits of a vector reads the packed weights; a last block may have more than the
    matrix. Zero points that are an input are unpacked in each call."""
    rng = np.random.default_rng(0)
    columns, size, in_a_byte = 1100, 64, 8 // bits
    blocks = -(-rows // size)
    integers = rng.integers(0, 1 << bits, (columns, blocks, size))
    zero = rng.integers(0, 1 << bits, (columns, blocks))
    scales = rng.uniform(0.01, 0.02, (columns, blocks)).astype(np.float32)

    def packed(values: Any) -> Any:
        padded = np.pad(values, [*[(0, 0)] * (values.ndim - 1), (0, -values.shape[-1] % in_a_byte)])
        parts = padded.reshape(*values.shape[:-1], -1, in_a_byte)
        return (parts << np.arange(0, 8, bits)).sum(-1).astype(np.uint8)

    bias = rng.standard_normal(columns).astype(np.float32)
    weights = {"q": packed(integers), "s": scales.reshape(-1), "n": bias}
    if zeros == "none":
        zero = np.full_like(zero, 1 << bits - 1)
    else:
        weights["z"] = zero.astype(np.float32) if zeros == "floats" else packed(zero)
    matrix = ((integers - zero[..., None]) * scales[..., None]).reshape(columns, -1)[:, :rows]
    given = {"x": rng.standard_normal((1, rows)).astype(np.float32)}
    if zeros == "an input":
        given["z"] = weights.pop("z").reshape(-1)
    inputs = ["x", "q", "s", "z" if zeros == "an input" or "z" in weights else "", "", "n"]
    options = {"K": rows, "N": columns, "bits": bits, "block_size": size}
    model = model_of("MatMulNBits", inputs, given, weights, options)
    model.opset_import[0].version = opset
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("result", 1, [1, columns]))
    onnx.save(model, tmp_path / "net.onnx")
    artifact = aotc.build(tmp_path / "net.onnx", emit="shared", out=f"{tmp_path}/", chips="sm_80")
    library = aotc.load(artifact.path)
    library.set_device("cpu")
    expected = given["x"].astype(np.float64) @ matrix.T + bias
    np.testing.assert_allclose(library.net(*given.values()), expected, rtol=1e-4, atol=1e-4)
    names = {kernel.name for kernel in artifact.manifest.kernels}
    if opset > 17:
        assert any(name.startswith(f"cpu_gemv_f32_w{bits}") for name in names), names


# Operator → the shapes of its inputs, of which only the first two are no constants, and attributes.
FUSED: dict[str, tuple[str, list[tuple[int, ...]], dict[str, Any]]] = {
    "gelu": ("Gelu", [(3, 40)], {}),
    "with a bias": ("BiasGelu", [(3, 40), (40,)], {}),
    "of tanh": ("FastGelu", [(3, 40), (40,)], {}),
    "of sigmoid": ("QuickGelu", [(3, 40)], {"alpha": 1.5}),
    "norm": ("SkipLayerNormalization", [(2, 5, 40), (2, 5, 40), (40,)], {"epsilon": 1e-5}),
    "norm with biases": (
        "SkipLayerNormalization",
        [(2, 5, 40), (5, 40), (40,), (40,), (40,)],
        {"epsilon": 1e-5},
    ),
    "matmul": ("FusedMatMul", [(2, 7, 5), (2, 9, 7)], {"transA": 1, "transB": 1, "alpha": 0.5}),
    "gemm": (
        "FusedGemm",
        [(7, 5), (7, 9), (9,)],
        {"transA": 1, "activation": "LeakyRelu", "activation_alpha": 0.2},
    ),
    "convolution": (
        "FusedConv",
        [(1, 4, 9, 11), (8, 4, 3, 3), (8,), (1, 8, 5, 6)],
        {
            "activation": "HardSigmoid",
            "activation_params": [0.3, 0.4],
            "pads": [1, 1, 1, 1],
            "strides": [2, 2],
        },
    ),
}


@pytest.mark.parametrize("case", FUSED)
def test_fused_operators(case: str, tmp_path: Path) -> None:
    operator, shapes, options = FUSED[case]
    rng = np.random.default_rng(0)
    names = ["x", *"abcd"[: len(shapes) - 1]]
    values = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in zip(names, shapes, strict=True)
    }
    given = {name: values[name] for name in names[:2]}
    weights = {name: values[name] for name in names[2:]}
    model = model_of(operator, names, given, weights, options)
    found, expected = compared(model, given, tmp_path)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_sum_behind_a_norm(tmp_path: Path) -> None:
    """SkipLayerNormalization also has the sum as a result, beside two of training."""
    rng = np.random.default_rng(0)
    given = {name: rng.standard_normal((2, 5, 40)).astype(np.float32) for name in "xa"}
    weights = {"b": rng.standard_normal(40).astype(np.float32)}
    model = model_of("SkipLayerNormalization", ["x", "a", "b"], given, weights, {"epsilon": 1e-5})
    model.graph.node[1].output.extend(["", "", "sum"])
    model.graph.node[2].CopyFrom(helper.make_node("Add", ["made", "sum"], ["result"]))
    found, expected = compared(model, given, tmp_path)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
