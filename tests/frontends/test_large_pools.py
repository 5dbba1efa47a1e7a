"""Maxima of large windows that overlap, as of YOLO's pools of 5 x 5: those of rows come first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")
onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

from onnx.reference import ReferenceEvaluator  # noqa: E402

import aotc  # noqa: E402
from aotc.frontends.onnx import FRONTEND  # noqa: E402
from aotc.frontends.torch import import_program  # noqa: E402

# The attributes of each pool, and the number of passes.
POOLS = {
    "five": ("kernel_shape = [5, 5], pads = [2, 2, 2, 2]", 2),
    "uneven": ("kernel_shape = [7, 5], pads = [1, 0, 4, 3], strides = [1, 2]", 2),
    "dilated": ("kernel_shape = [5, 5], pads = [4, 2, 4, 2], dilations = [2, 1]", 2),
    "three": ("kernel_shape = [3, 3], pads = [1, 1, 1, 1]", 1),
    "apart": ("kernel_shape = [5, 5], strides = [3, 3]", 1),
}


def saved(attributes: str, folder: Path) -> tuple[Any, Path]:
    text = f"""<ir_version: 9, opset_import: ["" : 17]>
      net (float[1, 3, 13, 18] x) => (float[1, 3, p, q] y) {{ y = MaxPool <{attributes}> (x) }}"""
    model = onnx.parser.parse_model(text)
    onnx.save(model, folder / "net.onnx")
    return model, folder / "net.onnx"


@pytest.mark.parametrize("name", POOLS)
def test_pools_of_onnx(name: str, tmp_path: Path) -> None:
    attributes, passes = POOLS[name]
    model, path = saved(attributes, tmp_path)
    assert str(FRONTEND.load(path, {})).count("linalg.pooling_nchw_max") == passes
    built = aotc.build(path, emit="shared", out=f"{tmp_path}/out/", chips="sm_80", optimization=1)
    library = aotc.load(built)
    library.set_device("cpu")
    x = np.random.default_rng(1).standard_normal((1, 3, 13, 18)).astype(np.float32)
    [expected] = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(np.asarray(library["net"](x)), expected)


@pytest.mark.parametrize(("size", "passes"), [(3, 1), (5, 2)])
def test_pools_of_pytorch(size: int, passes: int) -> None:
    module = torch.nn.MaxPool2d(size, 1, size // 2)
    program = torch.export.export(module, (torch.zeros(1, 3, 13, 18),))
    text = str(import_program(program, "net"))
    assert text.count("linalg.pooling_nchw_max") == passes
