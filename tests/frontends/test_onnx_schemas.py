"""Nodes that ONNX's definitions do not allow, and that onnx's own check accepts, are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

from aotc.errors import InputError
from aotc.frontends.importing import import_file
from aotc.frontends.onnx import FRONTEND

FLOATS, BYTES = np.zeros((2, 4, 6, 6), np.float32), np.zeros((2, 4, 6, 6), np.uint8)
ROW = np.ones(6, np.float32)
POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}


def _import(
    folder: Path, operator: str, inputs: list[Any], opset: int, attributes: dict[str, Any]
) -> None:
    """The first of the arrays is the model's input, the others are constants. The result has the
    elements of the last one."""
    import onnx
    from onnx import helper, numpy_helper

    names = [f"i{number}" for number in range(len(inputs))]
    element, made = (helper.np_dtype_to_tensor_dtype(inputs[one].dtype) for one in (0, -1))
    given = helper.make_tensor_value_info("i0", element, inputs[0].shape)
    constants = [
        numpy_helper.from_array(value, name)
        for name, value in zip(names[1:], inputs[1:], strict=True)
    ]
    node = helper.make_node(operator, names, ["y"], **attributes)
    result = helper.make_tensor_value_info("y", made, None)
    graph = helper.make_graph([node], "net", [given], [result], constants)
    opsets = [helper.make_opsetid("", opset)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "net.onnx")
    import_file(FRONTEND, folder / "net.onnx", {}, named=None)


@pytest.mark.parametrize(
    ("operator", "inputs", "opset", "attributes", "message"),
    [
        ("Elu", [BYTES], 22, {}, "'i0' has elements of uint8, which it does not take"),
        ("Min", [FLOATS, BYTES], 13, {}, "'i0' of float and 'i1' of uint8 must have one element"),
        ("Gelu", [FLOATS], 20, {"approximate": "erf"}, "approximate is 'erf' and must be one of"),
        ("Conv", [FLOATS, FLOATS], 22, {"auto_pad": "SAME"}, "auto_pad is 'SAME' and must be"),
        ("Conv", [FLOATS, FLOATS], 22, {"group": 3}, "group is 3, which does not divide 4"),
        ("ReduceMax", [FLOATS], 13, {"keepdims": 2}, "keepdims is 2 and must be 0 or 1"),
        (
            "ScatterND",
            [FLOATS, np.zeros((1, 4), np.int64), ROW[:1]],
            18,
            {"reduction": "sum"},
            "reduction is 'sum' and must be one of add, max, min, mul, none",
        ),
        (
            "MaxPool",
            [FLOATS],
            22,
            {**POOL, "ceil_mode": 1, "dilations": [2]},
            "dilations has 1 values, and 2 spatial dimensions have 2",
        ),
        (
            "QuantizeLinear",
            [FLOATS, ROW, BYTES[0, 0, 0]],
            13,
            {"axis": 7},
            "its axis 7 is out of range for 4 dimensions",
        ),
        (
            "MeanVarianceNormalization",
            [FLOATS],
            13,
            {"axes": [2, -2]},
            r"its axes \[2, -2\] name one dimension twice",
        ),
        (
            "Scatter",
            [FLOATS, np.zeros(6, np.int64), ROW],
            10,
            {},
            "its first input has 4 dimensions, and its indices have 1",
        ),
    ],
)
def test_what_is_refused(
    operator: str,
    inputs: list[Any],
    opset: int,
    attributes: dict[str, Any],
    message: str,
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        _import(tmp_path, operator, inputs, opset, attributes)
    assert str(caught.value).startswith(f"onnx.{operator} ('y'): ")


@pytest.mark.parametrize(
    ("operator", "inputs", "opset", "attributes"),
    [
        ("Elu", [FLOATS.astype(np.float16)], 6, {"alpha": 2.0}),
        ("Sub", [BYTES, BYTES], 7, {}),
        # The axis is not read: there is one scale.
        ("QuantizeLinear", [ROW, ROW[0], BYTES[0, 0, 0, 0]], 13, {"axis": 1}),
    ],
)
def test_what_is_not(
    operator: str, inputs: list[Any], opset: int, attributes: dict[str, Any], tmp_path: Path
) -> None:
    """Other widths of a kind of elements than an old opset has; an axis that nothing reads."""
    _import(tmp_path, operator, inputs, opset, attributes)


def test_words_of_torch_mlir_are_not_shown(tmp_path: Path) -> None:
    """They are of types and operations that the model does not have."""
    with pytest.raises(InputError) as caught:
        _import(tmp_path, "SpaceToDepth", [FLOATS], 13, {"blocksize": 4})
    assert "onnx.SpaceToDepth: torch-mlir has no lowering for it" in str(caught.value)
    assert "!torch" not in str(caught.value)


def test_functions_have_attributes_of_their_own(tmp_path: Path) -> None:
    """Which have the names of those of onnx's operators, and other values."""
    import onnx
    from onnx import parser

    (tmp_path / "net.onnx").write_bytes(
        parser.parse_model("""
        <ir_version: 9, opset_import: ["": 18, "local": 1]>
        net (float[4] x) => (float[4] y) {
          a = local.Cap <upper: int = 6> (x)
          y = local.Pad <mode: string = "both", layout: string = "nchw"> (a)
        }
        <opset_import: ["": 18], domain: "local">
        Cap <upper> (x) => (y) { z = Constant <value_int: int = @upper> () y = Identity (x) }
        <opset_import: ["": 18], domain: "local">
        Pad <mode, layout> (x) => (y) { y = Relu (x) }
        """).SerializeToString()
    )
    onnx.checker.check_model(onnx.load(tmp_path / "net.onnx"))
    import_file(FRONTEND, tmp_path / "net.onnx", {}, named=None)
