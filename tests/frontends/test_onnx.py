"""Models of ONNX against onnxruntime, on the CPU device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frontends.support import call

import aotc

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

CHIP = "sm_90"


def _check(path: Path, inputs: list[Any], folder: Path) -> None:
    built = aotc.build(path, emit="shared", out=f"{folder}/", chips=CHIP)
    session = onnxruntime.InferenceSession(path)
    names = [value.name for value in session.get_inputs()]
    expected = session.run(None, dict(zip(names, inputs, strict=True)))
    got = call(built, path.stem, inputs, expected)
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("external", [False, True])
def test_a_model_of_onnx_alone(external: bool, tmp_path: Path) -> None:
    """Made by onnx's own helpers: needs no PyTorch. Weights may be in a file beside it."""
    numbers = np.random.default_rng(1)
    weight = numbers.standard_normal((20, 30)).astype(np.float32)
    helper = onnx.helper
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["product"]),
        helper.make_node("Relu", ["product"], ["positive"]),
        helper.make_node("Softmax", ["positive"], ["y"], axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [5, 20])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [5, 30])],
        [onnx.numpy_helper.from_array(weight, "weight")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = tmp_path / "net.onnx"
    options = {"location": "weights", "size_threshold": 0} if external else {}
    onnx.save(model, path, save_as_external_data=external, **options)
    assert (tmp_path / "weights").exists() == external
    _check(path, [numbers.standard_normal((5, 20)).astype(np.float32)], tmp_path)


@pytest.mark.parametrize("name", ["mlp", "lenet", "residual", "block"])
def test_models_that_pytorch_exports(name: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="PyTorch exports to ONNX by onnxscript")
    from frontends.models import made, torch

    model, inputs = made(name, 2)
    path = tmp_path / f"{name}.onnx"
    torch.onnx.export(model, inputs, path, dynamo=True, verbose=False)
    _check(path, [tensor.numpy() for tensor in inputs], tmp_path)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(aotc.InputError, match="onnx cannot load"):
        aotc.build(path, out=tmp_path / "x")
