"""Models of ONNX's text: what is computed by functions, and what is refused before the import."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frontends.support import call

import aotc

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
SMALL = "net (float[2, 3] x) => (float[2, 3] y)"


def _saved(text: str, folder: Path) -> Path:
    path = folder / "net.onnx"
    onnx.save(onnx.parser.parse_model(text if text.startswith("<") else HEAD + text), path)
    return path


def _run(text: str, folder: Path, x: np.ndarray, expected: np.ndarray) -> None:
    artifact = aotc.build(_saved(text, folder), emit="shared", out=f"{folder}/", chips="sm_90")
    (got,) = call(artifact, "net", [x], [expected])
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("size", "starts", "expected"),
    [
        ("12", "20", range(11, -1, -1)),
        ("12", "-3", range(9, -1, -1)),
        ("n", "9223372036854775807", range(11, -1, -1)),
    ],
)
def test_a_slice_backwards(size: str, starts: str, expected: range, tmp_path: Path) -> None:
    """A start past the end is the last element."""
    text = f"""net (float[{size}] x) => (float[m] y)
    <int64[1] starts = {{{starts}}}, int64[1] ends = {{-9223372036854775807}},
     int64[1] axes = {{0}}, int64[1] steps = {{-1}}>
    {{ y = Slice (x, starts, ends, axes, steps) }}"""
    x = np.arange(12, dtype=np.float32)
    _run(text, tmp_path, x, np.array(expected, np.float32))


@pytest.mark.parametrize("form", ["constants", "values of the call"])
@pytest.mark.parametrize("size", ["3", "n"])
def test_a_slice_of_no_axes(form: str, size: str, tmp_path: Path) -> None:
    """It is the whole tensor."""
    names = ("starts", "ends", "axes", "steps")
    empty = ", ".join(f"int64[0] {name}" + " = {}" * (form == "constants") for name in names)
    given, known = ("", f"<{empty}>") if form == "constants" else (f", {empty}", "")
    text = f"""net (float[{size}, 2] x{given}) => (float[{size}, 2] y) {known}
    {{ y = Slice (x, starts, ends, axes, steps) }}"""
    artifact = aotc.build(_saved(text, tmp_path), emit="shared", out=f"{tmp_path}/", chips="sm_90")
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    vectors = [np.zeros(0, np.int64)] * (0 if form == "constants" else 4)
    (got,) = call(artifact, "net", [x, *vectors], [x])
    np.testing.assert_array_equal(got, x)


# Sizes of x, the shape that is asked for, and the sizes of x in a call.
RESHAPES = {
    "two sizes become one": ("b, s, 4, 8", "-1, 32", (2, 3, 4, 8)),
    "a size of 1 behind": ("b, s", "-1, 1", (2, 3)),
    "a size of 1 before": ("b, s, 8", "1, -1, 8", (2, 3, 8)),
    "around a known one": ("b, 4, s, 8", "-1, 2, 16", (2, 4, 3, 8)),
    "behind a copied one": ("b, 8, h, w", "0, 2, 4, -1", (2, 8, 3, 5)),
    "-1 is a size of the input": ("b, s, 8", "0, -1, 2, 4", (2, 3, 8)),
}


@pytest.mark.parametrize("name", RESHAPES)
def test_a_reshape_of_several_unknown_sizes(name: str, tmp_path: Path) -> None:
    """None of them is taken for 1."""
    given, shape, sizes = RESHAPES[name]
    asked = [int(size) for size in shape.split(",")]
    made = ", ".join(f"m{place}" for place in range(len(asked)))
    text = f"""net (float[{given}] x) => (float[{made}] y)
    <int64[{len(asked)}] shape = {{{shape}}}>
    {{ y = Reshape <allowzero: int = {int(0 not in asked)}> (x, shape) }}"""
    x = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
    copied = [sizes[place] if size == 0 else size for place, size in enumerate(asked)]
    _run(text, tmp_path, x, x.reshape(copied))


def test_a_reshape_of_several_unknown_sizes_to_one_of_the_call(tmp_path: Path) -> None:
    """As PyTorch's older exporter writes `x.view(x.shape[0] * x.shape[1], 32)`."""
    text = """net (float[b, s, 4, t] x, int64[1] n) => (float[m, 32] y) <int64[1] columns = {32}>
    { shape = Concat <axis: int = 0> (n, columns)
      [first] y = Reshape (x, shape) }"""
    artifact = aotc.build(_saved(text, tmp_path), emit="shared", out=f"{tmp_path}/", chips="sm_90")
    x = np.arange(192, dtype=np.float32).reshape(2, 3, 4, 8)
    expected = x.reshape(6, 32)
    for count in (6, -1):
        (got,) = call(artifact, "net", [x, np.array([count])], [expected])
        np.testing.assert_array_equal(got, expected)
    message = r"the input 'shape' does not lead to the sizes of the result \(onnx.Reshape 'first'\)"
    with pytest.raises(aotc.LibraryError, match=message):
        call(artifact, "net", [x, np.array([5])], [expected])


def test_a_reshape_to_sizes_of_the_call(tmp_path: Path) -> None:
    """With allowzero, as PyTorch's exporter writes all of them."""
    text = """net (float[b, s, 8] x) => (float[n, c, 2, 4] y)
    <int64[1] two = {2}, int64[1] four = {4}, int64[1] rest = {-1}>
    { n = Shape <start: int = 0, end: int = 1> (x)
      shape = Concat <axis: int = 0> (n, rest, two, four)
      y = Reshape <allowzero: int = 1> (x, shape) }"""
    x = np.arange(48, dtype=np.float32).reshape(2, 3, 8)
    _run(text, tmp_path, x, x.reshape(2, 3, 2, 4))


@pytest.mark.parametrize("step", [2**40, -(2**40), 2**63 - 1, -(2**63)])
def test_a_slice_by_a_step_beyond_the_size(step: int, tmp_path: Path) -> None:
    text = f"""net (float[12] x) => (float[m] y)
    <int64[1] starts = {{5}}, int64[1] ends = {{{12 if step > 0 else 0}}}, int64[1] axes = {{0}},
     int64[1] steps = {{{step}}}>
    {{ y = Slice (x, starts, ends, axes, steps) }}"""
    x = np.arange(12, dtype=np.float32)
    _run(text, tmp_path, x, np.array([5], np.float32))


def test_more_reflected_than_there_is(tmp_path: Path) -> None:
    """What is reflected is reflected again at the other end."""
    text = """net (float[4] x, float[1] z) => (float[15] y, float[4] w)
    <int64[2] p = {5, 6}, int64[2] q = {1, 2}>
    { y = Pad <mode: string = "reflect"> (x, p)
      w = Pad <mode: string = "reflect"> (z, q) }"""
    artifact = aotc.build(_saved(text, tmp_path), emit="shared", out=f"{tmp_path}/", chips="sm_90")
    x, z = np.arange(4, dtype=np.float32), np.array([7], np.float32)
    expected = [np.pad(x, (5, 6), mode="reflect"), np.pad(z, (1, 2), mode="reflect")]
    for got, one in zip(call(artifact, "net", [x, z], expected), expected, strict=True):
        np.testing.assert_array_equal(got, one)


STARTS = {
    "positive": (1000, 1000, 1),
    "an end beyond": (15, 1000, 1),
    "before the first": (-1000, 5, 1),
    "beyond the end, backwards": (1000, 3, -2),
    "an end before the start": (8, 2, 1),
}


@pytest.mark.parametrize("form", ["constants", "any size", "computed"])
@pytest.mark.parametrize("name", STARTS)
def test_a_slice_from_out_of_bounds(name: str, form: str, tmp_path: Path) -> None:
    """ONNX's node test slice_start_out_of_bounds in the forms that a model may have it in: what
    cannot be known before the run to be right is refused, and all else as NumPy has it."""
    start, end, step = STARTS[name]
    size = "n" if form == "any size" else "12"
    given = "" if form != "computed" else ", int64[1] a, int64[1] b"
    known = f"int64[1] a = {{{start}}}, int64[1] b = {{{end}}}, " if form != "computed" else ""
    text = f"""net (float[{size}] x{given}) => (float[m] y)
    <{known}int64[1] axes = {{0}}, int64[1] steps = {{{step}}}>
    {{ [first] y = Slice (x, a, b, axes, steps) }}"""
    x = np.arange(12, dtype=np.float32)
    inputs = [x, np.array([start]), np.array([end])][: 1 if form != "computed" else 3]
    path = _saved(text, tmp_path)
    if step < 0 and form != "constants":
        with pytest.raises(aotc.InputError, match=r"onnx.Slice 'first': a negative step from an"):
            aotc.build(path, out=tmp_path / "x")
        return
    artifact = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips="sm_90")
    expected = x[start:end:step]
    (got,) = call(artifact, "net", inputs, [expected])
    np.testing.assert_array_equal(got, expected)


def test_a_range_of_values(tmp_path: Path) -> None:
    """Limits that no step leads to are an empty range, and a step of 0 is an error of the call."""
    text = """net (int64 a, int64 b, int64 c) => (int64[n] y) { [first] y = Range (a, b, c) }"""
    artifact = aotc.build(_saved(text, tmp_path), emit="shared", out=f"{tmp_path}/", chips="sm_90")
    for numbers in ((0, 4, 1), (4, 0, 1), (5, 0, -2), (0, 5, -2), (0, 5, 9), (3, 3, 1)):
        expected = np.arange(*numbers)
        (got,) = call(artifact, "net", [np.array(one) for one in numbers], [expected])
        np.testing.assert_array_equal(got, expected)
    message = r"a size is divided by 0 \(onnx.Range 'first'\)"
    with pytest.raises(aotc.LibraryError, match=message):
        call(artifact, "net", [np.array(one) for one in (0, 4, 0)], [np.zeros(0)])


def test_repeats_of_the_run(tmp_path: Path) -> None:
    text = "net (float[2, 3] x, int64[2] r) => (float[a, b] y) { [first] y = Tile (x, r) }"
    artifact = aotc.build(_saved(text, tmp_path), emit="shared", out=f"{tmp_path}/", chips="sm_90")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for repeats in ((2, 1), (1, 3), (0, 2)):
        (got,) = call(artifact, "net", [x, np.array(repeats)], [np.tile(x, repeats)])
        np.testing.assert_array_equal(got, np.tile(x, repeats))
    for repeats in ((-1, 1), (2, -2)):
        message = r"a number of repeats is negative \(onnx.Tile 'first'\)"
        with pytest.raises(aotc.LibraryError, match=message):
            call(artifact, "net", [x, np.array(repeats)], [x])


# Sizes of x, what Expand is given, sizes of the result; then sizes of x that fit, and ones that do
# not, with the error.
EXPANDED: dict[str, tuple[str, str, str, list[Any], list[Any]]] = {
    "constant": (
        "b, s, 4",
        "int64[3] shape = {2, 3, 1}",
        "2, 3, 4",
        [((2, 3, 4), (2, 3, 1)), ((1, 3, 4), (2, 3, 1)), ((1, 1, 4), (2, 3, 1))],
        [
            ((3, 3, 4), (2, 3, 1), "'x' has another size in dimension 0 than 2, and not 1"),
            ((2, 5, 4), (2, 3, 1), "'x' has another size in dimension 1 than 3, and not 1"),
        ],
    ),
    "kept": ("b, s, 4", "int64[2] shape = {3, 1}", "b, 3, 4", [((5, 1, 4), (3, 1))], []),
    "at run time": (
        "b, s, 4",
        "",
        "p, q, 4",
        [((1, 3, 4), (2, 3, 1)), ((2, 3, 4), (1, 1, 4)), ((2, 1, 4), (1, 5, 1))],
        [
            ((3, 3, 4), (2, 3, 1), "sizes that depend on values"),
            ((2, 3, 4), (2, 3, 2), "the sizes of the input and of the shape do not fit"),
        ],
    ),
    "as it is": (
        "b, s",
        "",
        "b, s",
        [((2, 3), (2, 3)), ((1, 3), (1, 1))],
        [((1, 3), (2, 3), "the sizes of the input and of the shape do not fit")],
    ),
}


@pytest.mark.parametrize("name", EXPANDED)
def test_sizes_of_expand(name: str, tmp_path: Path) -> None:
    """One that is 1 when the entry is called is repeated, and no other is cut."""
    given, constant, made, good, bad = EXPANDED[name]
    count = len(good[0][1])
    shape = "" if constant else f", int64[{count}] shape"
    text = f"""net (float[{given}] x{shape}) => (float[{made}] y)
    {f"<{constant}>" if constant else ""} {{ y = Expand (x, shape) }}"""
    files = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    artifact = aotc.build(_saved(text, tmp_path), **files)
    for sizes, asked, *message in [*good, *bad]:
        x = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
        inputs = [x] if constant else [x, np.array(asked, np.int64)]
        if message:
            with pytest.raises(aotc.LibraryError, match=message[0]):
                call(artifact, "net", inputs, [np.empty((2, 3, 4), np.float32)])
            continue
        expected = np.broadcast_to(x, np.broadcast_shapes(sizes, asked))
        (got,) = call(artifact, "net", inputs, [expected])
        np.testing.assert_array_equal(got, expected)


def test_functions_of_the_model(tmp_path: Path) -> None:
    """Calls of the model's own functions, which have attributes and call ONNX's functions."""
    text = """<ir_version: 10, opset_import: ["" : 24, "mine" : 1]>
    net (float[2, 3, 4, 5] x) => (float[2, 3, 4, 5] y) {
      scaled = mine.scaled <by: float = 3.0> (x)
      y = MeanVarianceNormalization (scaled)
    }
    <domain: "mine", opset_import: ["" : 24]>
    scaled <by> (x) => (y) { y = Swish <alpha: float = @by> (x) }"""
    x = np.random.default_rng(1).standard_normal((2, 3, 4, 5)).astype(np.float32)
    scaled = x / (1 + np.exp(-3 * x.astype(np.float64)))
    mean, deviation = (f(scaled, (0, 2, 3), keepdims=True) for f in (np.mean, np.std))
    artifact = aotc.build(_saved(text, tmp_path), emit="shared", out=f"{tmp_path}/", chips="sm_90")
    (got,) = call(artifact, "net", [x], [x])
    np.testing.assert_allclose(got, (scaled - mean) / deviation, rtol=1e-3, atol=1e-5)


def test_functions_of_another_opset(tmp_path: Path) -> None:
    """They are taken where both opsets have the same operators: Relu has one version since opset
    14, Pad another one in 24 than in 21."""
    text = """<ir_version: 10, opset_import: ["" : 24, "mine" : 1]>
    net (float[2, 3] x) => (float[SIZES] y) { y = mine.own (x) }
    <domain: "mine", opset_import: ["" : 21]>
    own (x) => (y) { BODY }"""
    relu = text.replace("SIZES", "2, 3").replace("BODY", "y = Relu (x)")
    artifact = aotc.build(_saved(relu, tmp_path), emit="shared", out=f"{tmp_path}/", chips="sm_90")
    x = np.random.default_rng(1).standard_normal((2, 3)).astype(np.float32)
    (got,) = call(artifact, "net", [x], [x])
    np.testing.assert_array_equal(got, np.maximum(x, 0))
    body = "p = Constant <value = int64[4] {0, 1, 0, 1}> () y = Pad (x, p)"
    pad = _saved(text.replace("SIZES", "2, 5").replace("BODY", body), tmp_path)
    with pytest.raises(
        aotc.InputError, match="FunctionOp imports version 21 whereas model imports version 24"
    ):
        aotc.build(pad, emit="mlir", out=f"{tmp_path}/", chips="sm_90")


def test_a_product_of_batches_that_differ(tmp_path: Path) -> None:
    """Batches of any size have to be equal when the entry is called: none is repeated."""
    text = "net (float[n, 3, 4] a, float[m, 4, 2] b) => (float[k, 3, 2] y) { y = MatMul (a, b) }"
    artifact = aotc.build(_saved(text, tmp_path), emit="shared", out=f"{tmp_path}/", chips="sm_90")
    a, b = np.ones((5, 3, 4), np.float32), np.ones((5, 4, 2), np.float32)
    (got,) = call(artifact, "net", [a, b], [a @ b])
    np.testing.assert_array_equal(got, a @ b)
    with pytest.raises(aotc.LibraryError, match="'b' has another size in dimension 0 than 'a'"):
        call(artifact, "net", [a, b[:1]], [a @ b])


REFUSED = {
    "a shape that does not fit": (
        "net (float[2, 3] x) => (float[2, 3] y) { [first] y = MatMul (x, x) }",
        "(op_type:MatMul, node name: onnx.MatMul 'first'): [ShapeInferenceError] Incompatible",
    ),
    "no rank": (
        """net (float[2, 3] x, int64[n] s) => (float[a, b] y)
        { [first] z = Reshape (x, s)
          y = Relu (z) }""",
        "onnx.Reshape 'first': the rank of 'z' is not known before the run",
    ),
    "branches of several ranks": (
        """net (bool c, float[2, 3] x) => (float[n] y)
        { [first] z = If (c) <
            then_branch = t () => (float[2, 3] u) { u = Relu (x) },
            else_branch = e () => (float[6] v) { k = Constant <value_ints = [6]> ()
              v = Reshape (x, k) }>
          m = Constant <value_ints = [-1]> ()
          y = Reshape (z, m) }""",
        "onnx.If 'first': its branches have results of several ranks",
    ),
    "an operator in a function of the model": (
        """<ir_version: 10, opset_import: ["" : 24, "mine" : 1]>
        net (float[2, 3] x, int64[n] s) => (float[a, b] y) { y = mine.own (x, s) }
        <domain: "mine", opset_import: ["" : 24]>
        own (x, s) => (y) { [first] z = Reshape (x, s)
          y = Relu (z) }""",
        "onnx.Reshape 'first'",
    ),
    "larger than an address": (
        "net (float[1099511627776, 1048576] x) => (float[1099511627776, 1048576] y)"
        "{ y = Relu (x) }",
        "onnx.Relu: 'x' has 4611686018427387904 bytes, and an address has 47 bits",
    ),
    "sizes of a split from the run": (
        "net (float[4] x, int64[2] s) => (float[a] y, float[b] z) { y, z = Split (x, s) }",
        "onnx.Split: sizes that are known at run time alone have no lowering",
    ),
    "sizes of a split that are computed": (
        """net (float[4] x, int64[1] s) => (float[a] y, float[b] z)
        { t = Concat <axis: int = 0> (s, s)
          y, z = Split (x, t) }""",
        "onnx.Split: sizes that are known at run time alone have no lowering",
    ),
    "a start that may be past the end": (
        """net (float[n] x) => (float[m] y)
        <int64[1] a = {20}, int64[1] b = {0}, int64[1] axes = {0}, int64[1] steps = {-1}>
        { y = Slice (x, a, b, axes, steps) }""",
        "onnx.Slice: a negative step from an unknown start",
    ),
    "a shape of any length": (
        "net (float[2, 3] x, int64[n] s) => (float[a, b] y) { y = Reshape (x, s) }",
        "onnx.Reshape: sizes whose number is known at run time alone",
    ),
    "padding at the end of any size": (
        """net (float[1, 1, p, q] x) => (float[1, 1, r, s] y)
        { y = MaxPool <kernel_shape = [2, 2], pads = [0, 0, 1, 1]> (x) }""",
        "onnx.MaxPool: other padding at the end",
    ),
    "a pad to a negative size": (
        "net (float[4] x) => (float[m] y) <int64[2] p = {-9, -9}> { [first] y = Pad (x, p) }",
        "onnx.Pad 'first': 'y' would have the size -14",
    ),
    "a scale of 0": (
        """net (float[1, 1, 4, 4] x) => (float[1, 1, c, d] y) <float[4] s = {1.0, 1.0, 0.0, 1.0}>
        { [first] y = Resize <mode: string = "nearest"> (x, , s) }""",
        "onnx.Resize 'first': scales that are not positive, or beyond 2^31, have no lowering",
    ),
    "a scale of 1e30": (
        """net (float[1, 1, n, 4] x) => (float[1, 1, c, d] y) <float[4] s = {1.0, 1.0, 1e30, 1.0}>
        { [first] y = Resize <mode: string = "nearest"> (x, , s) }""",
        "onnx.Resize 'first': scales that are not positive, or beyond 2^31, have no lowering",
    ),
    "a scale whose product is rounded up": (
        """net (float[1, 1, 4, 10] x) => (float[1, 1, c, d] y) <float[4] s = {1.0, 1.0, 1.0, 1.3}>
        { [first] y = Resize <mode: string = "linear"> (x, , s) }""",
        "onnx.Resize 'first': scales whose size is not that of onnx's inference have no lowering",
    ),
    "repeats that are negative": (
        "net (float[2] x) => (float[m] y) <int64[1] r = {-1}> { [first] y = Tile (x, r) }",
        "onnx.Tile 'first'",
    ),
    "an operator of torch-mlir's, in another domain": (
        """<ir_version: 8, opset_import: ["" : 17, "mine" : 1]>
        net (float[2, 3] x) => (float[2, 3] y) { y = mine.Relu (x) }""",
        "onnx.mine.Relu: operators of the domain 'mine' have no lowering",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, tmp_path: Path) -> None:
    """What would be wrong, crash or hang in the import is refused by node, operator and reason."""
    text, message = REFUSED[name]
    path = _saved(text, tmp_path)
    with pytest.raises(aotc.InputError, match=re.escape(message)):
        aotc.build(path, out=tmp_path / "x")


def test_weights_of_another_size(tmp_path: Path) -> None:
    """Data in a file of its own that is shorter than the shape says."""
    model = onnx.parser.parse_model(HEAD + "net (float[4] x) => (float[4] y) { y = Add (x, w) }")
    weight = onnx.numpy_helper.from_array(np.ones(4, np.float32), "w")
    onnx.external_data_helper.set_external_data(weight, "w")
    weight.ClearField("raw_data")
    model.graph.initializer.append(weight)
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "w").write_bytes(b"1234")
    message = "The data of the tensor 'w' has 4 bytes: float of the shape [4] has 16."
    with pytest.raises(aotc.InputError, match=re.escape(message)):
        aotc.build(tmp_path / "net.onnx", out=tmp_path / "x")


def test_a_constant_of_another_size(tmp_path: Path) -> None:
    """Data that is not raw, of a tensor that is a node's attribute."""
    model = onnx.parser.parse_model(
        HEAD + "net (float[1] x) => (float[1] y) { c = Constant <value = float[1] {1.0}> ()\n"
        "y = Add (x, c) }"
    )
    [constant, _] = model.graph.node
    constant.attribute[0].t.ClearField("raw_data")
    constant.attribute[0].t.float_data[:] = [1.0, 2.0]
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(aotc.InputError, match="The data of a constant does not fit its shape"):
        aotc.build(path, out=tmp_path / "x")
