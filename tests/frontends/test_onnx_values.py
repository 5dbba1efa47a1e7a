"""Values at the edges of what ONNX's operators are written in terms of others for: one library has
all of a kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

import aotc
from aotc.errors import AotcError

OPSET = 24
# Integers of 8 bits that an entry has for narrower elements, and their numbers in ONNX.
F8 = {
    "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
    "float4_e2m1fn": 23,
}


def _build(folder: Path, nodes: list[Any], inputs: Any, outputs: Any, opset: int = OPSET) -> Any:
    """An entry `net` of these nodes; inputs and outputs are (element type, shape) by name."""
    import onnx
    from onnx import helper

    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, *type_) for name, type_ in inputs.items()],
        [helper.make_tensor_value_info(name, *type_) for name, type_ in outputs.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)
    path = folder / "net.onnx"
    onnx.save(model, path)
    library = aotc.load(
        aotc.build(path, emit="shared", out=f"{folder}/", chips="sm_80", optimization=1)
    )
    library.set_device("cpu")
    return library["net"]


def _numbers() -> np.ndarray[Any, Any]:
    """Numbers around each of those that 8 bits have: these, what is halfway between two, and the
    next ones above and below; and what is no number, or none of these."""
    import ml_dtypes

    found = [np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-30, -1e-30, 1e30, 65504, 3e38])]
    for name in F8:
        codes = np.arange(256 if "8" in name else 16, dtype=np.uint8)
        values = codes.view(getattr(ml_dtypes, name)).astype(np.float64)
        values = np.unique(values[np.isfinite(values)])
        found += [values, (values[1:] + values[:-1]) / 2]
    numbers = np.unique(np.concatenate(found).astype(np.float32))
    around = [np.nextafter(numbers, np.float32(side)) for side in (-np.inf, np.inf)]
    signed_zeros = np.array([0.0, -0.0], np.float32)
    return np.concatenate([numbers, *around, signed_zeros]).astype(np.float32)


@pytest.fixture(scope="module")
def casts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What casts make of `_numbers`, with and without saturation, by name."""
    from onnx import helper

    numbers = _numbers()
    nodes, outputs = [], {}
    for name, element in F8.items():
        for saturate in (0, 1):
            result = f"{name}_{saturate}"
            options = {} if name == "float4_e2m1fn" else {"saturate": saturate}
            nodes.append(helper.make_node("Cast", ["x"], [result], to=element, **options))
            outputs[result] = element, [len(numbers)]
    net = _build(tmp_path_factory.mktemp("casts"), nodes, {"x": (1, [len(numbers)])}, outputs)
    results = [np.zeros(len(numbers), np.uint8) for _ in outputs]
    net(numbers, *results)
    return dict(zip(outputs, results, strict=True))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("name", F8)
def test_casts_to_floats_of_8_bits_round_to_even(
    casts: dict[str, Any], name: str, saturate: int
) -> None:
    """Each number becomes the nearest, of two the even one; as the largest, or as none, ends what
    is beyond."""
    import ml_dtypes

    numbers, dtype = _numbers(), getattr(ml_dtypes, name)
    expected = numbers
    if saturate:
        limit = np.float32(ml_dtypes.finfo(dtype).max)
        expected = np.clip(numbers, -limit, limit)
    expected = expected.astype(dtype).astype(np.float32)
    given = casts[f"{name}_{saturate}"].view(dtype).astype(np.float32)
    if name == "float4_e2m1fn":
        # It has nothing that is no number.
        expected, given, numbers = (one[~np.isnan(numbers)] for one in (expected, given, numbers))
    np.testing.assert_array_equal(given, expected)
    np.testing.assert_array_equal(np.signbit(given), np.signbit(expected))


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from onnx import helper

    nodes = [
        helper.make_node("ReduceSum", ["x", "axes"], ["sums"], keepdims=0),
        helper.make_node("Slice", ["x", "starts", "ends", "along", "steps"], ["part"]),
        helper.make_node("TopK", ["row", "k"], ["best", "places"]),
        helper.make_node("CumSum", ["row", "axis"], ["added"], reverse=1),
    ]
    inputs = {
        "x": (1, [3, 2, 2]),
        "axes": (7, [1]),
        "starts": (7, [1]),
        "ends": (7, [1]),
        "along": (7, [1]),
        "steps": (7, [1]),
        "row": (1, [7]),
        "k": (7, [1]),
        "axis": (7, []),
    }
    outputs = {
        "sums": (1, [3, 2]),
        "part": (1, [2, 2, 2]),
        "best": (1, [5]),
        "places": (7, [5]),
        "added": (1, [7]),
    }
    net = _build(tmp_path_factory.mktemp("chosen"), nodes, inputs, outputs)
    x = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    row = np.array([1, np.nan, np.inf, -np.inf, 1, np.nan, 2], np.float32)

    def call(axes: int, start: int, end: int, along: int, step: int, k: int = 5) -> list[Any]:
        results = [
            np.zeros(shape, np.int64 if element == 7 else np.float32)
            for element, shape in outputs.values()
        ]
        vectors = [np.array([one], np.int64) for one in (axes, start, end, along, step)]
        net(x, *vectors, row, np.array([k], np.int64), np.array(-1, np.int64), *results)
        return results

    return x, row, call


@pytest.mark.parametrize("axes", [1, 2, -1, -2])
def test_axes_of_a_reduction_are_chosen_in_the_call(chosen: Any, axes: int) -> None:
    x, _, call = chosen
    np.testing.assert_array_equal(call(axes, 0, 2, 0, 1)[0], x.sum(axis=axes))


@pytest.mark.parametrize(
    ("start", "end", "along", "step"),
    [
        (0, 2, 0, 1),
        (1, 2**63 - 1, 0, 1),
        (-2, 3, -3, 1),
        (2**63 - 1, -(2**63), 0, -2),
        (-1, 0, 0, -1),
        (0, 9, 0, 2),
    ],
)
def test_slices_are_what_python_has(
    chosen: Any, start: int, end: int, along: int, step: int
) -> None:
    x, _, call = chosen
    np.testing.assert_array_equal(call(1, start, end, along, step)[1], x[start:end:step])


def test_the_largest_are_in_order(chosen: Any) -> None:
    """What is no number is larger than all; of equal ones, the first comes first."""
    _, row, call = chosen
    _, _, best, places, added = call(1, 0, 2, 0, 1)
    np.testing.assert_array_equal(best, [np.nan, np.nan, np.inf, 2, 1])
    np.testing.assert_array_equal(places, [1, 5, 2, 6, 0])
    np.testing.assert_array_equal(added, np.cumsum(row[::-1])[::-1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0, 2, 0, 1), "the axes do not lead to the sizes of the result"),
        ((1, 0, 3, 0, 1), "the slice does not have the sizes of the result"),
        ((1, 0, 2, 1, 1), "the slice does not have the sizes of the result"),
        ((1, 0, 2, 0, 1, 4), "the input 'k' does not lead to the sizes of the result"),
    ],
)
def test_values_that_do_not_fit_are_an_error(
    chosen: Any, arguments: tuple[int, ...], message: str
) -> None:
    _, _, call = chosen
    with pytest.raises(AotcError, match=message):
        call(*arguments)


def _case(operator: str) -> tuple[Any, Any, Any, list[Any], list[Any]]:
    """Names and types of inputs, those of results, attributes; values that fit, and that do not."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)

    def ints(*values: int) -> np.ndarray[Any, Any]:
        return np.array(values, np.int64)

    given = {"x": (1, [3, 4])}
    vector = given | {"v": (7, [2])}
    if operator == "Pad":
        return given | {"v": (7, [4])}, [5, 4], {}, [x, ints(1, 0, 1, 0)], [x, ints(2, 0, 1, 0)]
    if operator == "Reshape":
        return vector, [6, 2], {}, [x, ints(-1, 2)], [x, ints(2, 6)]
    if operator == "Tile":
        return vector, [6, 4], {}, [x, ints(2, 1)], [x, ints(3, 1)]
    if operator == "Unsqueeze":
        one = given | {"v": (7, [1])}
        return one, [1, 3, 4], {}, [x, ints(-3)], [x, ints(1)]
    if operator == "ConstantOfShape":
        return {"v": (7, [2])}, [2, 3], {}, [ints(2, 3)], [ints(3, 2)]
    if operator == "Range":
        limits = {name: (7, []) for name in "abc"}
        numbers = [np.array(one, np.int64) for one in (0, 4, 1)]
        return limits, [4], {}, numbers, [*numbers[:2], np.array(2, np.int64)]
    assert operator == "DFT"
    signal = np.arange(8, dtype=np.float32).reshape(1, 8, 1)
    types = {"x": (1, [1, 8, 1]), "n": (7, []), "axis": (7, [])}
    axis = np.array(1, np.int64)
    return (
        types,
        [1, 8, 2],
        {},
        [signal, np.array(8, np.int64), axis],
        [signal, np.array(6, np.int64), axis],
    )


@pytest.mark.parametrize(
    "operator", ["ConstantOfShape", "DFT", "Pad", "Range", "Reshape", "Tile", "Unsqueeze"]
)
def test_values_lead_to_the_declared_sizes(operator: str, tmp_path: Path) -> None:
    """A call with values that lead to other sizes than the model declares is an error."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    inputs, made, attributes, good, bad = _case(operator)
    node = helper.make_node(operator, list(inputs), ["y"], **attributes)
    element = 7 if operator == "Range" else 1
    net = _build(tmp_path, [node], inputs, {"y": (element, made)})
    types = [helper.make_tensor_value_info(name, *type_) for name, type_ in inputs.items()]
    graph = helper.make_graph(
        [node], "net", types, [helper.make_tensor_value_info("y", element, None)]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)
    (expected,) = ReferenceEvaluator(model).run(None, dict(zip(inputs, good, strict=True)))
    result = np.zeros(made, np.int64 if element == 7 else np.float32)
    net(*good, result)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(AotcError, match=r"lead to the size|do not fit"):
        net(*bad, result)


# By name, the first word of which is the operator: attributes; sizes of the inputs and of the
# result; indices that are within bounds, and some that are not.
SCATTERED: dict[str, tuple[Any, ...]] = {
    "ScatterND": ({}, [[2, 3], [2, 2], [2]], [2, 3], [[-1, 2], [0, -3]], [[0, 5], [1, 1]]),
    "ScatterND of sums": (
        {"reduction": "add"},
        [[2, 3], [2, 2], [2]],
        [2, 3],
        [[-1, 2], [0, -3]],
        [[0, 5], [1, 1]],
    ),
    "ScatterElements": ({"axis": 1}, [[2, 3], [1, 2], [1, 2]], [2, 3], [[2, 0]], [[1, 3]]),
    "ScatterElements of the largest": (
        {"axis": 1, "reduction": "max"},
        [[2, 3], [1, 2], [1, 2]],
        [2, 3],
        [[-1, 0]],
        [[1, 3]],
    ),
    "MaxUnpool": (
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        [[1, 1, 1, 2], [1, 1, 1, 2]],
        [1, 1, 2, 4],
        [[[[1, 6]]]],
        [[[[1, 8]]]],
    ),
}


@pytest.mark.parametrize("name", SCATTERED)
def test_indices_of_what_is_scattered_are_within_bounds(name: str, tmp_path: Path) -> None:
    """An index that is out of bounds is an error of the call, and writes no other element."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    attributes, shapes, made, good, bad = SCATTERED[name]
    operator = name.partition(" ")[0]
    values = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes]
    names = ["x", "indices", "updates"][: len(shapes)]
    inputs = {
        name: (7 if name == "indices" else 1, shape)
        for name, shape in zip(names, shapes, strict=True)
    }
    node = helper.make_node(operator, names, ["y"], **attributes)
    net = _build(tmp_path, [node], inputs, {"y": (1, made)})
    values[1] = np.array(good, np.int64)
    expected = np.zeros(made, np.float32)
    if operator == "MaxUnpool":
        expected.reshape(-1)[values[1].reshape(-1)] = values[0].reshape(-1)
    else:
        (expected,) = ReferenceEvaluator(node).run(None, dict(zip(names, values, strict=True)))
    result = np.zeros(made, np.float32)
    net(*values, result)
    np.testing.assert_array_equal(result, expected)
    for negative in (False, True):
        values[1] = np.array(bad, np.int64)
        if negative:
            values[1][values[1] == np.max(bad)] = -9
        with pytest.raises(AotcError, match="out of bounds"):
            net(*values, result)


def test_constant_indices_are_within_bounds(tmp_path: Path) -> None:
    """One that is not is an error of the call, too."""
    from onnx import helper, numpy_helper

    nodes = [
        helper.make_node("Constant", [], ["i"], value=numpy_helper.from_array(np.array([[0, 5]]))),
        helper.make_node("ScatterND", ["x", "i", "updates"], ["y"]),
    ]
    inputs = {"x": (1, [2, 3]), "updates": (1, [1])}
    net = _build(tmp_path, nodes, inputs, {"y": (1, [2, 3])})
    with pytest.raises(AotcError, match=r"an index is out of bounds \(onnx.ScatterND"):
        net(*(np.zeros(shape, np.float32) for _, shape in inputs.values()), np.zeros((2, 3), "f4"))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_bits_of_8_bit_floats_are_refused(name: str, tmp_path: Path) -> None:
    """A BitCast of them is no conversion of numbers."""
    from onnx import helper

    node = helper.make_node("BitCast", ["x"], ["y"], to=2)
    graph = helper.make_graph(
        [node],
        "net",
        [helper.make_tensor_value_info("x", F8[name], [4])],
        [helper.make_tensor_value_info("y", 2, [4])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13)
    import onnx

    onnx.save(model, tmp_path / "net.onnx")
    with pytest.raises(AotcError, match=r"onnx\.BitCast"):
        aotc.build(tmp_path / "net.onnx", out=tmp_path / "x")


def test_blocks_of_mode_crd(tmp_path: Path) -> None:
    """ONNX's own test has as many channels as a block has rows, which hides the channels' order."""
    from onnx import helper

    node = helper.make_node("DepthToSpace", ["x"], ["y"], mode="CRD", blocksize=3)
    x = np.arange(2 * 18 * 4 * 5, dtype=np.float32).reshape(2, 18, 4, 5)
    net = _build(tmp_path, [node], {"x": (1, [None, 18, 4, 5])}, {"y": (1, [None, 2, 12, 15])})
    expected = x.reshape(2, 2, 3, 3, 4, 5).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 12, 15)
    np.testing.assert_array_equal(net(x), expected)
    with pytest.raises(AotcError, match=r"onnx\.DepthToSpace.*: mode 'CRD' with a number of chan"):
        _build(tmp_path, [node], {"x": (1, [2, None, 4, 5])}, {"y": (1, [2, None, 12, 15])})


def test_pools_of_several_images(tmp_path: Path) -> None:
    """Indices count through all images, without the padding; an average is of what its window has
    before the padding's end, also where the window goes on behind it."""
    from onnx import helper

    averages = {
        "a": {"kernel_shape": [3, 3], "strides": [2, 3], "ceil_mode": 1},
        "b": {
            "kernel_shape": [3, 3],
            "strides": [2, 2],
            "ceil_mode": 1,
            "pads": [1, 1, 1, 1],
            "count_include_pad": 1,
        },
    }
    window: Any = {"kernel_shape": [3, 2], "strides": [2, 2]}
    largest = {
        "c": window,
        "d": {**window, "pads": [1, 1, 0, 0]},
        "e": window | {"storage_order": 1},
    }
    nodes = [helper.make_node("AveragePool", ["x"], [y], **one) for y, one in averages.items()]
    nodes += [helper.make_node("MaxPool", ["x"], [y, f"i{y}"], **o) for y, o in largest.items()]
    sizes = {"a": [4, 4], "b": [5, 6], "c": [4, 5], "d": [4, 5], "e": [4, 5]}
    results = {y: (1, [2, 3, *size]) for y, size in sizes.items()}
    results |= {f"i{y}": (7, [2, 3, *sizes[y]]) for y in largest}
    x = np.random.default_rng(0).normal(size=(2, 3, 9, 10)).astype(np.float32)
    found = dict(
        zip(results, _build(tmp_path, nodes, {"x": (1, x.shape)}, results)(x), strict=True)
    )
    for name, one in averages.items():
        (down, across), zeros = one["strides"], 1 if "pads" in one else 0
        padded = np.pad(x, [(0, 0), (0, 0), (zeros, zeros), (zeros, zeros)])
        padded = np.pad(padded, [(0, 0), (0, 0), (0, 3), (0, 3)], constant_values=np.nan)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        high, wide = sizes[name]
        expected = np.nanmean(windows[:, :, ::down, ::across][:, :, :high, :wide], axis=(-2, -1))
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-6)
    for name in largest:
        order = x.transpose(0, 1, 3, 2) if name == "e" else x
        np.testing.assert_array_equal(order.reshape(-1)[found[f"i{name}"]], found[name])


def test_averages_with_dilations_count_the_padding_behind_the_image(tmp_path: Path) -> None:
    from onnx import helper

    attributes = {"kernel_shape": [3, 3], "dilations": [2, 2], "pads": [0, 0, 2, 2]}
    node = helper.make_node("AveragePool", ["x"], ["y"], count_include_pad=1, **attributes)
    x = np.random.default_rng(0).normal(size=(1, 2, 9, 10)).astype(np.float32)
    shapes = [1, 2, "h", "w"], [1, 2, None, None]
    y = _build(tmp_path, [node], {"x": (1, shapes[0])}, {"y": (1, shapes[1])}, opset=19)(x)
    padded = np.pad(x, [(0, 0), (0, 0), (0, 2), (0, 2)])
    taps = [padded[:, :, i : i + 7, j : j + 8] for i in (0, 2, 4) for j in (0, 2, 4)]
    np.testing.assert_allclose(y, np.mean(taps, axis=0), rtol=1e-5, atol=1e-6)


def test_indices_of_the_first_opset_that_has_them(tmp_path: Path) -> None:
    """It has no Mod, no dilations and no ceil_mode."""
    from onnx import helper

    node = helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[3, 2], pads=[1, 1, 0, 0])
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 4)).astype(np.float32)
    results = {"y": (1, [2, 3, 4, 4]), "i": (7, [2, 3, 4, 4])}
    y, i = _build(tmp_path, [node], {"x": (1, x.shape)}, results, opset=8)(x)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 0), (1, 0)], constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (2, 3))
    np.testing.assert_array_equal(y, windows.max(axis=(-2, -1)))
    np.testing.assert_array_equal(x.reshape(-1)[i], y)


def test_matmuls_of_8_bit_floats(tmp_path: Path) -> None:
    """They are those of what the elements stand for."""
    import ml_dtypes
    import onnx
    from onnx import helper, numpy_helper

    dtype = ml_dtypes.float8_e4m3fn
    generator = np.random.default_rng(0)
    a, b = (generator.normal(size=shape).astype(dtype) for shape in ((4, 8), (8, 3)))
    given = ("a", a), ("b", b)
    weights = {
        "a_scale": np.float32(0.5),
        "a_zero": np.array(0, dtype),
        "b_scale": np.array([0.5, 1, 2], np.float32),
        "b_zero": np.zeros(3, dtype),
        "y_scale": np.float32(0.25),
        "y_zero": np.array(0, dtype),
    }
    names = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
    graph = helper.make_graph(
        [helper.make_node("QLinearMatMul", names, ["y"])],
        "net",
        [
            helper.make_tensor_value_info(name, F8["float8_e4m3fn"], one.shape)
            for name, one in given
        ],
        [helper.make_tensor_value_info("y", F8["float8_e4m3fn"], [4, 3])],
        [numpy_helper.from_array(np.asarray(one), name) for name, one in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    options: Any = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80", "optimization": 1}
    library = aotc.load(aotc.build(path, **options))
    library.set_device("cpu")
    result = np.zeros((4, 3), np.uint8)
    library["net"](a.view(np.uint8), b.view(np.uint8), result)
    exact = (a.astype(np.float32) * 0.5) @ (b.astype(np.float32) * weights["b_scale"])
    expected = (exact / 0.25).astype(dtype).astype(np.float32)
    np.testing.assert_allclose(result.view(dtype).astype(np.float32), expected, rtol=0.07)


@pytest.mark.parametrize(
    ("axes", "keeps", "opset"),
    [([1], 1, 17), ([-1, 1], 0, 17), ([2], 0, OPSET), ([1, 2], 1, OPSET)],
)
def test_products_of_any_batch(tmp_path: Path, axes: list[int], keeps: int, opset: int) -> None:
    """torch-mlir has ReduceProd of known sizes alone."""
    from onnx import helper

    x = np.arange(1, 31, dtype=np.float32).reshape(2, 3, 5) / 8
    expected = np.prod(x, axis=tuple(axes), keepdims=bool(keeps))
    constant = helper.make_node("Constant", [], ["axes"], value_ints=axes)
    if opset < 18:
        nodes = [helper.make_node("ReduceProd", ["x"], ["y"], axes=axes, keepdims=keeps)]
    else:
        nodes = [constant, helper.make_node("ReduceProd", ["x", "axes"], ["y"], keepdims=keeps)]
    shape = ["N", *expected.shape[1:]]
    net = _build(tmp_path, nodes, {"x": (1, ["N", 3, 5])}, {"y": (1, shape)}, opset)
    np.testing.assert_allclose(net(x), expected, rtol=1e-6)


@pytest.mark.parametrize("threshold", [0.0, 0.4, 2.0])
def test_boxes_of_unknown_number_above_a_threshold(tmp_path: Path, threshold: float) -> None:
    """torch-mlir's lowering fails at the call if any score is below the threshold."""
    from onnx import helper

    constants = [
        ("most", 7, [5]),
        ("iou", 1, [0.3]),
        ("threshold", 1, [threshold]),
    ]
    nodes = [
        *(
            helper.make_node("Constant", [], [name], value=helper.make_tensor(name, kind, [1], one))
            for name, kind, one in constants
        ),
        helper.make_node(
            "NonMaxSuppression", ["boxes", "scores", *(one[0] for one in constants)], ["y"]
        ),
    ]
    net = _build(
        tmp_path,
        nodes,
        {"boxes": (1, [1, "n", 4]), "scores": (1, [1, 1, "n"])},
        {"y": (7, ["rows", 3])},
        opset=13,
    )
    corners = np.arange(6, dtype=np.float32)
    boxes = np.stack([corners, corners, corners + 1, corners + 1], 1)[None]
    scores = np.array([[[0.1, 0.9, 0.4, 0.5, 0.3, 0.7]]], np.float32)
    best = [i for i in (1, 5, 3, 2, 4) if scores[0, 0, i] > threshold]
    assert np.asarray(net(boxes, scores)).tolist() == [[0, 0, i] for i in best]


@pytest.mark.parametrize(("kind", "dtype"), [(1, np.float32), (10, np.float16)])
def test_remainders_of_large_quotients(tmp_path: Path, kind: int, dtype: Any) -> None:
    """They are C's fmod, which has no rounding errors."""
    from onnx import helper

    x = np.array([3, 5, 714.9966, -11509.5, 122, 13.6328, -7, 0], dtype)
    y = np.array([np.inf, -np.inf, -0.0210785, -5.216143, 0.71, -1.4424, 0.5, 3], dtype)
    node = helper.make_node("Mod", ["x", "y"], ["z"], fmod=1)
    net = _build(tmp_path, [node], {"x": (kind, [8]), "y": (kind, [8])}, {"z": (kind, [8])})
    np.testing.assert_array_equal(net(x, y), np.fmod(x, y))


# The message, and the operator, element types and shapes of inputs at the call, and attributes.
SIZES_THAT_DIFFER = {
    "indices and the updates": (
        "ScatterElements",
        {"x": (1, (5, 9)), "i": (7, (5, 3)), "y": (1, (5, 2))},
        {"axis": 1},
    ),
    "sizes of what they replace": (
        "ScatterND",
        {"x": (1, (5, 9)), "i": (7, (3, 1)), "y": (1, (3, 8))},
        {},
    ),
    "length for each batch": (
        "ReverseSequence",
        {"x": (1, (5, 9)), "i": (7, (4,))},
        {"batch_axis": 0, "time_axis": 1},
    ),
    "size of the whole": ("Split", {"x": (1, (9,))}, {}),
}


@pytest.mark.parametrize("message", SIZES_THAT_DIFFER)
def test_sizes_that_differ(message: str, tmp_path: Path) -> None:
    """What is read at the places of another input, of a size that is not declared, is checked."""
    from onnx import helper

    operator, inputs, options = SIZES_THAT_DIFFER[message]
    names, results = [*inputs], ["z"]
    nodes = []
    if operator == "Split":
        nodes.append(helper.make_node("Constant", [], ["p"], value_ints=[2, 3]))
        names, results = ["x", "p"], ["z", "w"]
    nodes.append(helper.make_node(operator, names, results, **options))
    declared = {
        name: (element, [1 if size == 1 else None for size in shape])
        for name, (element, shape) in inputs.items()
    }
    net = _build(tmp_path, nodes, declared, {"z": (1, None)})
    given = [
        np.zeros(shape, np.float32 if element == 1 else np.int64)
        for element, shape in inputs.values()
    ]
    with pytest.raises(aotc.LibraryError, match=message):
        net(*given)
