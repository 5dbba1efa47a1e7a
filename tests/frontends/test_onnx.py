"""Models of ONNX against onnxruntime, on the CPU device."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frontends.support import call
from helpers.command import aotc_command, process_environment

import aotc
from aotc.depfile import files_read
from aotc.request_words import make_request

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

CHIP = "sm_90"


# Relative to the largest result.
LIMITS = {np.dtype(np.float32): 5e-6, np.dtype(np.float16): 1e-2}


def _build(path: Path) -> aotc.Artifact:
    return aotc.build(path, emit="shared", out=f"{path.parent}/", chips=CHIP)


def _results(path: Path, inputs: list[Any]) -> list[Any]:
    session = onnxruntime.InferenceSession(path)
    names = [value.name for value in session.get_inputs()]
    return list(session.run(None, dict(zip(names, inputs, strict=True))))


def _check(artifact: aotc.Artifact, path: Path, inputs: list[Any]) -> None:
    results = _results(path, inputs)
    got = call(artifact, path.stem, inputs, results)
    for ours, theirs in zip(got, results, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        error = np.abs(ours.astype(np.float64) - theirs.astype(np.float64)).max()
        assert error <= LIMITS[theirs.dtype] * np.abs(theirs).max()


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
    # What -MD writes down.
    beside = [tmp_path / "weights"] if external else []
    assert files_read(make_request(path)) == [path, *beside]
    _check(_build(path), path, [numbers.standard_normal((5, 20)).astype(np.float32)])
    if external:
        (tmp_path / "weights").write_bytes(b"cut")
        with pytest.raises(aotc.InputError, match="onnx cannot load"):
            _build(path)


def test_replacing_initializers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their names; a norm is not folded into numbers, and what operators have to know stays."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    numbers = np.random.default_rng(1)
    helper, float_ = onnx.helper, onnx.TensorProto.FLOAT
    shapes = {"conv.weight": (4, 2, 3, 3), "conv::bias": (4,), "fc": (5, 16)}
    shapes |= dict.fromkeys(("scale", "shift", "mean", "variance"), (4,))
    nodes = [
        helper.make_node("Conv", ["x", "conv.weight", "conv::bias"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"]),
        helper.make_node("Resize", ["n", "", "scales"], ["r"]),
        helper.make_node("Reshape", ["r", "sizes"], ["f"]),
        helper.make_node("Gemm", ["f", "fc"], ["y"], transB=1),
    ]
    path = tmp_path / "net.onnx"

    def write(values: dict[str, Any]) -> None:
        fixed = {"scales": np.float32([1, 1, 1, 1]), "sizes": np.int64([1, 16])}
        graph = helper.make_graph(
            nodes,
            "net",
            [helper.make_tensor_value_info("x", float_, [1, 2, 4, 4])],
            [helper.make_tensor_value_info("y", float_, [1, 5])],
            [onnx.numpy_helper.from_array(v, name) for name, v in {**values, **fixed}.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.save(model, path)

    first, second = (
        {name: numbers.random(shape, np.float32) for name, shape in shapes.items()}
        for _ in range(2)
    )
    write(first)
    files = {"out": f"{tmp_path}/", "weights": tmp_path / "lib" / "net.weights"}
    library = aotc.load(aotc.build(path, emit="shared", chips=CHIP, replaceable="*", **files))
    assert set(library.weights) == set(shapes)
    x = numbers.random((1, 2, 4, 4), np.float32)
    for values in (first, second):
        write(values)
        for name, value in values.items():
            library.weights.set(name, value)
        np.testing.assert_allclose(library.net(x), *_results(path, [x]), rtol=1e-5)


@pytest.mark.parametrize("data", [None, b"abcd"])
def test_weights_that_are_not_there(data: bytes | None, tmp_path: Path) -> None:
    """Memory is taken for what the file beside the model has, not for what the model says."""
    from onnx import TensorProto, helper

    size = 1 << 40
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name in "xy")
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[size])
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="weights")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [weight])
    path = tmp_path / "net.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    )
    if data is not None:
        (tmp_path / "weights").write_bytes(data)
    command = [*aotc_command(), "build", path, "--emit", "mlir", "-o", tmp_path / "net.mlir"]
    done = subprocess.run(
        ["/bin/sh", "-c", f'ulimit -v {4 << 20}; exec "$@"', "sh", *command],
        env=process_environment({"AOTC_CACHE": "off"}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"aotc: error: onnx cannot load '{path}': Data of TensorProto ( tensor name: w) should be "
        f"stored in {tmp_path}/weights, but it is not regular file.\n"
        if data is None
        else "aotc: error: The data of the tensor 'w' has 4 bytes: float of the shape "
        f"[{size}] has {4 * size}.\n"
    )


def _exported(name: str, dtype: str, batch: int, folder: Path, **options: Any) -> tuple[Path, Any]:
    """The file, and what makes inputs for a batch."""
    pytest.importorskip("onnxscript", reason="PyTorch exports to ONNX by onnxscript")
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from frontends.models import SMALL, inputs_of, made

    type_ = {"f32": torch.float32, "f16": torch.float16}[dtype]
    path = folder / f"{name}.onnx"
    inputs = inputs_of(SMALL[name], batch, type_)
    torch.onnx.export(made(SMALL[name], type_), inputs, path, dynamo=True, verbose=False, **options)
    return path, lambda size: [tensor.numpy() for tensor in inputs_of(SMALL[name], size, type_)]


NAMES = ["product", "mlp", "lenet", "resnet18", "block", "embedded"]


@pytest.mark.parametrize(
    ("name", "dtype", "batch"),
    [*((name, "f32", 8) for name in NAMES), *((name, "f16", 1) for name in NAMES)],
)
def test_models_that_pytorch_exports(name: str, dtype: str, batch: int, tmp_path: Path) -> None:
    path, inputs = _exported(name, dtype, batch, tmp_path)
    _check(_build(path), path, inputs(batch))


@pytest.mark.parametrize("name", ["mlp", "lenet", "resnet18", "block", "embedded"])
def test_a_batch_of_any_size(name: str, tmp_path: Path) -> None:
    path, inputs = _exported(name, "f32", 3, tmp_path, dynamic_shapes=({0: "batch"},))
    artifact = _build(path)
    entry = aotc.load(artifact)[path.stem]
    for batch in (1, 2, 8):
        _check(artifact, path, inputs(batch))
        shapes = [result.shape for result in _results(path, inputs(batch))]
        assert entry.result_shapes(*inputs(batch)) == tuple(shapes)


def test_shapes_of_results(tmp_path: Path) -> None:
    """Of a Reshape, a Pad of a Concat, a Slice and a Transpose of sizes that are not known."""
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    numbers = {
        "rows": np.array([-1, 3], np.int64),
        "pads": np.array([0, 1, 2, 0], np.int64),
        "first": np.array([1], np.int64),
        "last": np.array([-1], np.int64),
        "axis": np.array([0], np.int64),
    }
    nodes = [
        helper.make_node("Add", ["x", "z"], ["sum"]),
        helper.make_node("Reshape", ["sum", "rows"], ["parted"]),
        helper.make_node("Concat", ["x", "y"], ["joined"], axis=0),
        helper.make_node("Pad", ["joined", "pads"], ["padded"]),
        helper.make_node("Slice", ["x", "first", "last", "axis"], ["sliced"]),
        helper.make_node("Transpose", ["y"], ["turned"]),
    ]
    given = {"x": ["n", 6], "y": ["k", 6], "z": ["n", 6]}
    outputs = {"parted": ["r", 3], "padded": ["p", 7], "sliced": ["t", 6], "turned": [6, "k"]}
    values = [
        [helper.make_tensor_value_info(name, floats, shape) for name, shape in some.items()]
        for some in (given, outputs)
    ]
    constants = [onnx.numpy_helper.from_array(value, name) for name, value in numbers.items()]
    path = tmp_path / "shapes.onnx"
    graph = helper.make_graph(nodes, "shapes", *values, constants)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    entry = aotc.load(_build(path)).shapes
    for n, k in ((4, 2), (3, 1), (6, 5)):
        inputs = [np.full((rows, 6), rows, np.float32) for rows in (n, k, n)]
        results = _results(path, inputs)
        assert entry.result_shapes((n, 6), (k, 6), (n, 6)) == tuple(one.shape for one in results)
        for ours, theirs in zip(entry(*inputs), results, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(aotc.LibraryError, match="'z' has another size in dimension 0 than 'x'"):
        entry.result_shapes((4, 6), (2, 6), (5, 6))


@pytest.mark.parametrize("opset", [18, 20])
def test_gelu_by_tanh(opset: int, tmp_path: Path) -> None:
    """Of its parts, and as one operation (from opset 20 on)."""
    pytest.importorskip("onnxscript", reason="PyTorch exports to ONNX by onnxscript")
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    path = tmp_path / "gelu.onnx"
    x = torch.linspace(-6, 6, 4001)
    module = torch.nn.GELU(approximate="tanh")
    torch.onnx.export(module, (x,), path, dynamo=True, verbose=False, opset_version=opset)
    operations = {node.op_type for node in onnx.load(path).graph.node}
    assert ("Gelu" in operations) == (opset >= 20)
    _check(_build(path), path, [x.numpy()])


def test_a_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(aotc.InputError, match="onnx cannot load"):
        aotc.build(path, out=tmp_path / "x")


def _model(path: Path, operation: str, opset: int, **attributes: Any) -> Path:
    """A model of one operation, f32[2, 3, 4] to the same."""
    helper = onnx.helper
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3, 4]) for name in "xy")
    graph = helper.make_graph([helper.make_node(operation, "x", "y", **attributes)], "m", [x], [y])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("mine", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def test_elements_that_onnx_has_not(tmp_path: Path) -> None:
    """ONNX's own checker takes any number for a type."""
    path = _model(tmp_path / "x.onnx", "Relu", 17)
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.elem_type = 65537
    onnx.save(model, path)
    with pytest.raises(aotc.InputError, match="65537"):
        _build(path)


def test_old_operations(tmp_path: Path) -> None:
    """Softmax was over all dimensions from `axis` on, until opset 13. Large weights go with it."""
    path = _model(tmp_path / "old.onnx", "Softmax", 9, axis=1)
    model = onnx.load(path)
    numbers = np.random.default_rng(1)
    weight = numbers.random((100_000, 3, 4), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "weight"))
    node = onnx.helper.make_node("Gather", ["weight", "rows"], ["x"])
    rows = onnx.helper.make_tensor_value_info("rows", onnx.TensorProto.INT64, [2])
    model.graph.node.insert(0, node)
    model.graph.input[0].CopyFrom(rows)
    onnx.save(model, path)
    _check(_build(path), path, [np.array([5, 99_999])])


def test_more_outputs_than_memory_has(tmp_path: Path) -> None:
    """What onnx's C++ throws for such an attribute is an error in the model."""
    path = _model(tmp_path / "x.onnx", "Split", 18, num_outputs=(1 << 63) - 1)
    with pytest.raises(aotc.InputError, match="The shapes of this model do not fit: "):
        aotc.build(path, out=tmp_path / "x")


@pytest.mark.parametrize(
    ("operation", "attributes", "message"),
    [
        (
            "Relu",
            {"domain": "mine", "name": "first"},
            "onnx.mine.Relu 'first': operators of the domain 'mine' have no lowering",
        ),
        (
            "Bernoulli",
            {"seed": 1.0},
            "torch-mlir cannot lower this model: onnx.Bernoulli: torch-mlir has no lowering",
        ),
    ],
)
def test_what_cannot_be_lowered(
    operation: str, attributes: Any, message: str, tmp_path: Path
) -> None:
    path = _model(tmp_path / "x.onnx", operation, 17, **attributes)
    with pytest.raises(aotc.InputError, match=re.escape(message)):
        aotc.build(path, out=tmp_path / "x")
