"""Weights of 4 bits that a DequantizeLinear reads, against NumPy in double precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="ONNX is not installed: pip install 'aotc[onnx]'")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import aotc  # noqa: E402

COLUMNS = 1100
# By name: whether the integers have signs, whether there are zero points, K, the elements of a
# block (0: one scale for each column, -1: one scale), whether the matrix is N x K, and the rows.
CASES = {
    "blocks": (True, False, 256, 32, False, 1),
    "blocks with zero points": (True, True, 256, 32, False, 1),
    "no sign": (False, False, 256, 64, False, 1),
    "no sign, zero points": (False, True, 256, 64, False, 1),
    "a last block with fewer elements": (False, True, 250, 64, False, 1),
    "columns": (True, True, 256, 0, False, 1),
    "one scale": (True, True, 256, -1, False, 1),
    "transposed": (True, True, 256, 32, True, 1),
    "columns, transposed": (False, True, 256, 0, True, 1),
    "several rows": (True, True, 256, 32, False, 20),
}


@pytest.mark.parametrize("name", CASES)
def test_products_read_packed_weights(name: str, tmp_path: Path) -> None:
    """Those of one vector and of whole blocks do."""
    signed, has_zeros, k, block, is_transposed, rows = CASES[name]
    rng = np.random.default_rng(0)
    low, element = (-8, TensorProto.INT4) if signed else (0, TensorProto.UINT4)
    integers = rng.integers(low, low + 16, (k, COLUMNS))
    blocks = -(-k // block) if block > 0 else 1
    scales = rng.uniform(0.01, 0.02, (blocks, COLUMNS if block >= 0 else 1)).astype(np.float32)
    zeros = rng.integers(low, low + 16, scales.shape) if has_zeros else np.zeros(scales.shape, int)
    places = np.arange(k) // block if block > 0 else np.zeros(k, int)
    matrix = (integers - zeros[places]) * scales[places].astype(np.float64)

    def stored(values: Any) -> Any:
        values = values if block > 0 or values.shape[0] > 1 else values[0]
        values = values[0] if block < 0 and values.shape == (1,) else values
        return values.T if is_transposed else values

    def narrow(name: str, values: Any) -> Any:
        return helper.make_tensor(name, element, values.shape, np.ravel(values))

    constants = [narrow("q", stored(integers)), numpy_helper.from_array(stored(scales), "s")]
    constants += [narrow("z", stored(zeros))] if has_zeros else []
    inputs, axis = [one.name for one in constants], int(is_transposed != (block <= 0))
    options = {"axis": axis} | ({"block_size": block} if block > 0 else {})
    nodes = [helper.make_node("DequantizeLinear", inputs, ["w"], **options)]
    bias = np.zeros(COLUMNS, np.float32)
    if is_transposed:
        bias = rng.standard_normal(COLUMNS).astype(np.float32)
        constants.append(numpy_helper.from_array(bias, "n"))
        nodes.append(helper.make_node("Gemm", ["x", "w", "n"], ["y"], transB=1))
    else:
        nodes.append(helper.make_node("MatMul", ["x", "w"], ["y"]))
    x = rng.standard_normal((rows, k)).astype(np.float32)
    info = helper.make_tensor_value_info
    ends = [info("x", 1, x.shape)], [info("y", 1, (rows, COLUMNS))]
    graph = helper.make_graph(nodes, "net", *ends, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "net.onnx")
    artifact = aotc.build(tmp_path / "net.onnx", emit="shared", out=f"{tmp_path}/", chips="sm_80")
    library = aotc.load(artifact.path)
    library.set_device("cpu")
    expected = x.astype(np.float64) @ matrix + bias
    np.testing.assert_allclose(library.net(x), expected, rtol=1e-4, atol=1e-4)
    names = {kernel.name for kernel in artifact.manifest.kernels}
    assert any(one.startswith("cpu_gemv_f32_w4") for one in names) == (
        rows == 1 and k % max(block, 1) == 0
    ), names


def _refused(nodes: list[Any], constants: list[Any], k: int, folder: Path) -> str:
    """The message of a build, which reads an `x` of 1 x `k`."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "net", [info("x", 1, (1, k))], [info("y", 1, (1, 8))], constants
    )
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=domains, ir_version=10)
    onnx.save(model, folder / "net.onnx")
    with pytest.raises(aotc.errors.InputError) as error:
        aotc.build(folder / "net.onnx", emit="mlir", out=folder / "net.mlir", chips="sm_80")
    return str(error.value)


MATRIX = [
    helper.make_tensor("q", TensorProto.INT4, (64, 8), np.zeros(512, int)),
    numpy_helper.from_array(np.ones((4, 8), np.float32), "s"),
]


def test_sizes_that_do_not_fit_are_those_of_the_model(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s"], ["w"], axis=0, block_size=16),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    message = _refused(nodes, MATRIX, 32, tmp_path)
    assert "onnx.MatMul)" in message
    assert "NBits" not in message


def test_an_axis_out_of_range_is_refused(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s"], ["w"], axis=5, block_size=16),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    assert "onnx.DequantizeLinear" in _refused(nodes, MATRIX, 64, tmp_path)


def _packed(columns: int, zeros: int, folder: Path) -> str:
    """The refusal of a MatMulNBits with this attribute N (0: none) and this many zero points."""
    attributes: dict[str, Any] = {"K": 64, "bits": 4, "block_size": 16, "domain": "com.microsoft"}
    if columns:
        attributes["N"] = columns
    inputs = ["x", "b", "scales", "zeros"]
    constants = [
        numpy_helper.from_array(np.zeros((8, 4, 8), np.uint8), "b"),
        numpy_helper.from_array(np.ones(32, np.float32), "scales"),
        numpy_helper.from_array(np.zeros(zeros, np.uint8), "zeros"),
    ]
    node = helper.make_node("MatMulNBits", inputs, ["y"], **attributes)
    return _refused([node], constants, 64, folder)


@pytest.mark.parametrize("columns", [0, -8])
def test_a_product_without_columns_is_refused(columns: int, tmp_path: Path) -> None:
    assert "MatMulNBits" in _packed(columns, 16, tmp_path)


@pytest.mark.parametrize("zeros", [8, 24, 32])
def test_zero_points_of_another_size_are_refused(zeros: int, tmp_path: Path) -> None:
    message = _packed(8, zeros, tmp_path)
    assert f"its zero points are {zeros} elements of uint8" in message
    assert "those of 8 columns with 4 blocks are 16" in message
