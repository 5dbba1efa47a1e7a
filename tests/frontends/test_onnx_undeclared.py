"""ONNX models that declare less than PyTorch's exporter does: no shapes of results or of values
between, optional results that nothing reads; and models that onnx does not know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

import onnx

import aotc
from aotc.errors import InputError
from aotc.frontends.onnx.nodes import walk
from aotc.frontends.onnx.preparation import prepare

NUMBERS = np.random.default_rng(4)
IMAGE = NUMBERS.standard_normal((2, 3, 4, 6)).astype(np.float32)
HEAD = '<ir_version: 8, opset_import: ["" : {opset}]> g (float[n,3,h,w] x) => '


def built(model: Any, folder: Path) -> Any:
    """The model as a function that the CPU device executes."""
    onnx.save(model, folder / "net.onnx")
    artifact = aotc.build(folder / "net.onnx", emit="shared", out=f"{folder}/", chips="sm_80")
    library = aotc.load(artifact)
    library.set_device("cpu")
    return library["net"]


def run(model: Any, inputs: list[np.ndarray], folder: Path) -> list[np.ndarray]:
    results = built(model, folder)(*inputs)
    return list(results) if isinstance(results, tuple) else [results]


def parsed(opset: int, text: str) -> Any:
    return onnx.parser.parse_model(HEAD.format(opset=opset) + text)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_negative_pads_of_old_opsets_cut(mode: str, tmp_path: Path) -> None:
    """The pads are an attribute before opset 11."""
    model = parsed(
        7,
        "(float[a,b,c,d] y) { y = Pad <"
        f'mode = "{mode}", value = 2.0, pads = [0,0,1,2, 0,0,-1,1]> (x) }}',
    )
    (got,) = run(model, [IMAGE], tmp_path)
    options = {"constant_values": 2.0} if mode == "constant" else {}
    padded = np.pad(IMAGE[:, :, :-1], [(0, 0), (0, 0), (1, 0), (2, 1)], mode=mode, **options)
    np.testing.assert_array_equal(got, padded)


def test_masks_that_nothing_reads(tmp_path: Path) -> None:
    """onnx infers no type of the mask of a Dropout before opset 10."""
    model = parsed(7, "(float[n,3,h,w] y) { d, mask = Dropout <ratio = 0.5> (x) y = Neg (d) }")
    (got,) = run(model, [IMAGE], tmp_path)
    np.testing.assert_array_equal(got, -IMAGE)


def test_results_that_are_read_or_needed_are_kept() -> None:
    model = parsed(
        13,
        "(float[n,3,h,w] y, bool[n,3,h,w] mask) { k = Constant <value = int64[1] {2}> ()"
        " values, indices = TopK (x, k)"
        " d, mask = Dropout (x) p, places = MaxPool <kernel_shape = [1, 1]> (x) y = Add (d, p) }",
    )
    counts = {node.operator: len(node.proto.output) for node in walk(prepare(model))}
    assert counts["TopK"] == 2
    assert counts["Dropout"] == 2
    assert counts["MaxPool"] == 1


def test_normalizations_of_any_sizes(tmp_path: Path) -> None:
    """LRN, and LogSoftmax of several dimensions, before opset 13."""
    model = parsed(
        11,
        "(float[n,3,h,w] a, float[n,3,h,w] b) { a = LRN <size = 3, alpha = 0.5, bias = 2.0> (x)"
        " b = LogSoftmax <axis = 1> (x) }",
    )
    got = run(model, [IMAGE], tmp_path)
    squares = np.pad(IMAGE.astype(float) ** 2, [(0, 0), (1, 1), (0, 0), (0, 0)])
    total = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    rows = IMAGE.reshape(2, -1)
    wanted = [
        IMAGE / (2 + 0.5 / 3 * total) ** 0.75,
        (rows - np.log(np.exp(rows).sum(1, keepdims=True))).reshape(IMAGE.shape),
    ]
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("is_declared", [True, False])
def test_ranks_of_computed_sizes(is_declared: bool, tmp_path: Path) -> None:
    """As tf2onnx and Keras write them: the batch is read from the shape, and put before the other
    sizes. onnx's inference gives such a result no rank."""
    model = parsed(
        13,
        """(float[n,h] y, float[n,h,w,d] z) {
          s = Shape (x)
          zero = Constant <value = int64 {0}> ()
          axes = Constant <value = int64[1] {0}> ()
          rest = Constant <value = int64[1] {72}> ()
          four = Constant <value = int64[3] {3, 4, 6}> ()
          b = Gather (s, zero)
          n = Unsqueeze (b, axes)
          flat_sizes = Concat <axis = 0> (n, rest)
          sizes = Concat <axis = 0> (n, four)
          flat = Reshape (x, flat_sizes)
          y = Relu (flat)
          twos = ConstantOfShape <value = float[1] {2.0}> (sizes)
          z = Mul (x, twos)
        }""",
    )
    if not is_declared:
        for value in model.graph.output:
            value.type.tensor_type.ClearField("shape")
    got = run(model, [IMAGE], tmp_path)
    np.testing.assert_array_equal(got[0], np.maximum(IMAGE.reshape(2, 72), 0))
    np.testing.assert_array_equal(got[1], 2 * IMAGE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ y = Softmin (x) }", "No Op registered for Softmin"),
        ("{ y = my.Op (x) }", "No opset import for domain 'my'"),
        ("{ y = Relu (q) }", "input 'q' of node"),
        ("{ a = NonZero (x) y = Unique (x) }", "onnx.Unique: results whose number is not declared"),
    ],
)
def test_results_without_a_shape_do_not_hide_an_error(
    text: str, message: str, tmp_path: Path
) -> None:
    model = parsed(17, f"(float[n] y) {text}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "net.onnx")
    with pytest.raises(InputError) as raised:
        aotc.build(tmp_path / "net.onnx", emit="host-mlir", out=tmp_path / "x.mlir")
    assert message in str(raised.value)


def test_inputs_that_nothing_reads_are_tensors_of_numbers(tmp_path: Path) -> None:
    model = parsed(17, "(float[n,3,h,w] y) { y = Relu (x) }")
    model.graph.input.append(
        onnx.helper.make_tensor_value_info("words", onnx.TensorProto.STRING, [2])
    )
    onnx.save(model, tmp_path / "net.onnx")
    with pytest.raises(InputError, match="'words' has elements of string"):
        aotc.build(tmp_path / "net.onnx", emit="host-mlir", out=tmp_path / "x.mlir")


def test_opsets_that_onnx_does_not_know(tmp_path: Path) -> None:
    model = parsed(99, "(float[n,3,h,w] y) { y = Relu (x) }")
    onnx.save(model, tmp_path / "net.onnx")
    with pytest.raises(InputError, match="The model is of opset 99, and onnx"):
        aotc.build(tmp_path / "net.onnx", emit="host-mlir", out=tmp_path / "x.mlir")


@pytest.mark.parametrize(
    ("mode", "padding", "align_corners"),
    [("linear", "zeros", 0), ("nearest", "border", 1), ("cubic", "reflection", 1)],
)
def test_grids_of_any_size(mode: str, padding: str, align_corners: int, tmp_path: Path) -> None:
    """Coordinates outside of the image, an image of one element, and no image."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 20]>'
        " g (float[n,c,h,w] x, float[n,a,b,2] grid) => (float[n,c,a,b] y) { y = GridSample <"
        f'mode = "{mode}", padding_mode = "{padding}", align_corners = {align_corners}>'
        " (x, grid) }"
    )
    torch = pytest.importorskip("torch", reason="PyTorch has the same operation")
    name = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    function = built(model, tmp_path)
    for given, count in ((IMAGE, 5), (IMAGE[:, :1, :1, :1].copy(), 2), (IMAGE[:0], 3)):
        grid = NUMBERS.uniform(-2, 2, (len(given), 3, count, 2)).astype(np.float32)
        if not given.size:
            assert function(given, grid).shape == (0, 3, 3, count)
            continue
        wanted = torch.nn.functional.grid_sample(
            torch.tensor(given), torch.tensor(grid), name, padding, bool(align_corners)
        )
        np.testing.assert_allclose(function(given, grid), wanted.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sizes", ["n,l,1", "2,l", "2,20,1"])
def test_frames_of_any_number(sizes: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]>'
        f" g (float[{sizes}] x, int64 step) => (float[a,f,5,2] y)"
        " { k = Constant <value = int64 {8}> () y = STFT (x, step, , k) }"
    )
    function = built(model, tmp_path)
    x = NUMBERS.standard_normal((2, 20)).astype(np.float32)
    given = x.reshape([2, 20, 1][: sizes.count(",") + 1])
    frames = np.stack([x[:, start : start + 8] for start in range(0, 13, 3)], 1)
    wanted = np.fft.rfft(frames)
    got = function(given, np.array(3))
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], wanted, rtol=1e-4, atol=1e-5)
    if sizes != "2,20,1":
        with pytest.raises(aotc.LibraryError, match="a frame is longer than the signal"):
            function(given[:, :7].copy(), np.array(3))


def test_no_elements_of_sizes_that_are_computed(tmp_path: Path) -> None:
    """A size of 0 divides nothing, unless another one is to be inferred."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]>'
        " g (float[n,m,4] x, int64[2] s) => (float[a,b] y) { y = Reshape <allowzero = 1> (x, s) }"
    )
    function = built(model, tmp_path)
    x = IMAGE.reshape(6, 6, 4)
    assert function(x[:0], np.array([0, 7])).shape == (0, 7)
    assert function(x[:, :0], np.array([5, 0])).shape == (5, 0)
    assert function(x[:0], np.array([-1, 7])).shape == (0, 7)
    np.testing.assert_array_equal(function(x, np.array([8, -1])), x.reshape(8, 18))
    with pytest.raises(aotc.LibraryError, match="a size is divided by 0"):
        function(x[:0], np.array([-1, 0]))
