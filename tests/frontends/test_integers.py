"""Integers of PyTorch and ONNX: unsigned ones have no sign, and large ones are not rounded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")
pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

from frontends.support import call  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import aotc  # noqa: E402
import aotc.torch  # noqa: E402

functional = torch.nn.functional
Function = Callable[[Any, Any], Any]
CHIP = "sm_80"
FUNCTIONS: dict[str, Function] = {
    "as a float": lambda x, y: x.float(),
    "scaled": lambda x, y: x / 255,
    "normalized": lambda x, y: (x.float() / 255 - 0.5) / 0.25,
    "divided": lambda x, y: x / y,
    "floor divided": lambda x, y: x // y,
    "divided, truncated": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "remainder": lambda x, y: torch.remainder(x, y),
    "remainder of a number": lambda x, y: x % 7,
    "fmod": lambda x, y: torch.fmod(x, y),
    "equal": lambda x, y: x == 250,
    "less": lambda x, y: x < y,
    "at least": lambda x, y: x >= 200,
    "less than a float": lambda x, y: x < 199.5,
    "added": lambda x, y: x + y,
    "subtracted": lambda x, y: x - y,
    "multiplied": lambda x, y: x * y,
    "negated": lambda x, y: -x,
    "inverted": lambda x, y: ~x,
    "bits": lambda x, y: (x & y) ^ (x | y),
    "shifted": lambda x, y: (x >> 3) + (y << 2),
    "sum": lambda x, y: x.sum(1),
    "sum of 8 bits": lambda x, y: x.sum(1, dtype=torch.uint8),
    "mean": lambda x, y: x.mean(dtype=torch.float32),
    "product": lambda x, y: x.prod(1),
    "largest": lambda x, y: x.amax(1),
    "where it is largest": lambda x, y: x.argmax(1),
    "largest, and where": lambda x, y: x.max(1),
    "smallest": lambda x, y: torch.minimum(x, y).amin(0),
    "clamped": lambda x, y: x.clamp(5, 200),
    "either": lambda x, y: torch.where(x > 100, x, y),
    "either, of two types": lambda x, y: torch.where(x > 100, x, y.to(torch.int32)),
    "filled": lambda x, y: x.masked_fill(y > 100, 222),
    "joined": lambda x, y: torch.cat([x, y], 1),
    "joined with others": lambda x, y: torch.cat([x, y.to(torch.int64) * 300]),
    "split": lambda x, y: x.split([1, 3], 1)[1],
    "padded": lambda x, y: functional.pad(x, (1, 1), value=200),
    "moved": lambda x, y: x.t().flip(0).reshape(-1)[1:].roll(2, 0),
    "made": lambda x, y: torch.full((3,), 200, dtype=torch.uint8) + x[0, 0],
    "from floats": lambda x, y: (x.float() * 0.99).to(torch.uint8),
    "from integers": lambda x, y: (x.to(torch.int32) * 3).to(torch.uint8),
    "as a truth": lambda x, y: x.to(torch.bool),
    "from a truth": lambda x, y: (x > y).to(torch.uint8) * 255,
    "gathered": lambda x, y: x[:, torch.tensor([2, 0])],
    "a table": lambda x, y: torch.arange(256, dtype=torch.uint8)[x.long()],
}
X = np.array([[250, 7, 0, 200], [3, 128, 127, 255]], np.uint8)
Y = np.array([[3, 9, 201, 255], [250, 2, 1, 254]], np.uint8)


class Module(torch.nn.Module):
    """What each of the functions gives."""

    def __init__(self, functions: dict[str, Function]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, x: Any, y: Any) -> Any:
        return tuple(function(x, y) for function in self.functions.values())


def check(functions: dict[str, Function], x: Any, y: Any, folder: Path) -> None:
    """All of them in one program, so that each has others beside it."""
    module = Module(functions)
    expected, names = [], []
    for name, result in zip(functions, module(x, y), strict=True):
        parts = result if isinstance(result, tuple) else (result,)
        expected += [part.numpy() for part in parts]
        names += [name] * len(parts)
    files: dict[str, Any] = {"emit": "shared", "out": f"{folder}/", "chips": CHIP}
    artifact = aotc.torch.build(module, (x, y), name="integers", **files)
    got = call(artifact, "integers", [x.numpy(), y.numpy()], expected)
    for name, ours, theirs in zip(names, got, expected, strict=True):
        is_exact = theirs.dtype.kind in "iub"
        np.testing.assert_allclose(ours, theirs, rtol=0 if is_exact else 1e-6, err_msg=name)


def test_unsigned(tmp_path: Path) -> None:
    check(FUNCTIONS, torch.from_numpy(X), torch.from_numpy(Y), tmp_path)


# What crashes torch-mlir, and comparisons for which it cuts numbers off to the tensor's type.
INT8: dict[str, Function] = {
    "largest": lambda x, y: x.max(),
    "smallest": lambda x, y: x.min(),
    "a product": lambda x, y: x @ y.t(),
    "added products": lambda x, y: torch.addcmul(x, x, y),
    "floor divided": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "truncated": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "remainder": lambda x, y: torch.remainder(x, y),
    "remainder of a number": lambda x, y: x % 3,
    "floor divided by a number": lambda x, y: x // -3,
    "fmod": lambda x, y: torch.fmod(x, y),
    "fmod of a number": lambda x, y: torch.fmod(x, 3),
    "negated": lambda x, y: -x,
    "subtracted from": lambda x, y: 3 - (x - 1),
    "times a truth": lambda x, y: (x > 3) * y,
    "beside truths": lambda x, y: ((x > 3) & y) | ((x > 3) ^ y) | (y < (x > 3)),
    "joined with truths": lambda x, y: torch.cat([x, x > 3]),
    "sum of truths": lambda x, y: (x > 3).sum(1, dtype=torch.int8),
}
# Operators that are loops for each element, and numbers beside integers.
LOOPS: dict[str, Function] = {
    "powers": lambda x, y: x ** y.abs(),
    "powers of two types": lambda x, y: x ** (y.abs() % 5).to(torch.int32),
    "negative powers": lambda x, y: (x % 3 - 1) ** -(y | 1).abs(),
    "powers of a number": lambda x, y: 3 ** y.abs() + torch.pow(True, y.abs()),
    "powers of rows": lambda x, y: x[:, :1] ** y[:1].abs(),
    "greatest common divisor": lambda x, y: torch.gcd(x, y),
    "least common multiple": lambda x, y: torch.lcm(x % 11, y),
    "remainder of a number by": lambda x, y: torch.remainder(100, y),
    "bits of a number": lambda x, y: (x | 5) ^ 3,
    "shifted by": lambda x, y: (x << (y & 3)).__rshift__(y & 1),
}
BOOL: dict[str, Function] = {
    "more than a negative number": lambda x, y: x > -200,
    "less than 2": lambda x, y: x < 2,
    "equal to 2": lambda x, y: x == 2,
    "not 4": lambda x, y: x != 4,
    "equal to 1": lambda x, y: x == 1,
    "more than 0": lambda x, y: x > 0,
    "at most a half": lambda x, y: x <= 0.5,
}


@pytest.mark.parametrize("dtype", [torch.int8, torch.bool], ids=str)
def test_small_types(dtype: Any, tmp_path: Path) -> None:
    x = torch.tensor([[-128, 7, 0, 100], [-5, 3, 127, -1]]).to(dtype)
    y = torch.tensor([[3, -7, 2, 7], [-3, 5, 2, 3]]).to(dtype)
    check(BOOL if dtype == torch.bool else INT8, x, y, tmp_path)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int64], ids=str)
def test_loops(dtype: Any, tmp_path: Path) -> None:
    x = torch.tensor([[-128, 7, 0, 100], [-5, 3, 127, -1]]).to(dtype)
    y = torch.tensor([[3, 7, 2, 7], [-3, 5, 2, 6]]).to(dtype)
    check(LOOPS, x, y, tmp_path)


LARGE: dict[str, Function] = {
    "negated": lambda x, y: -x,
    "negated and more": lambda x, y: -(x * 2) + 1,
    "floor divided": lambda x, y: x // y,
    "floor divided by a number": lambda x, y: x // 3,
    "by a negative number": lambda x, y: torch.div(x, -7, rounding_mode="floor"),
    "by rows": lambda x, y: torch.floor_divide(x, y[:, :1]),
    "of two types": lambda x, y: x // y.to(torch.int16),
    "truncated": lambda x, y: torch.div(x, 3, rounding_mode="trunc"),
    "remainder": lambda x, y: x % 3,
    "product": lambda x, y: x @ y.t(),
    "absolute": lambda x, y: x.abs(),
}


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_large_integers(dtype: Any, tmp_path: Path) -> None:
    """They have no float of as many bits."""
    limits = torch.iinfo(dtype)
    odd = 16777217 if dtype == torch.int32 else 2**53 + 1
    x = torch.tensor([[limits.min + 2, 7, -5, odd], [-128, 33554435, limits.max - 2, -odd]])
    y = torch.tensor([[3, -7, 2, 7], [-3, 5, 2, 3]], dtype=dtype)
    check(LARGE, x.to(dtype), y, tmp_path)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8], ids=str)
@pytest.mark.parametrize("name", ["floor", "trunc", "remainder"])
def test_divisions_that_have_no_result(name: str, dtype: Any, tmp_path: Path) -> None:
    """A divisor of 0 is an error of the call; the least integer by -1 is that integer again."""
    function: Function = {
        "floor": lambda x, y: x // y,
        "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
        "remainder": lambda x, y: x % y,
    }[name]
    least = torch.iinfo(dtype).min
    x, y = (torch.tensor(one).to(dtype) for one in ([7, least, 5], [2, -1, 1]))
    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": CHIP}
    artifact = aotc.torch.build(Module({name: function}), (x, y), name="divided", **files)
    quotients = {"remainder": [1, 0, 0]}.get(name, [3, least, 5])
    expected = np.array(quotients, x.numpy().dtype)
    (got,) = call(artifact, "divided", [x.numpy(), y.numpy()], [expected])
    np.testing.assert_array_equal(got, expected)
    y[1] = 0
    with pytest.raises(aotc.LibraryError, match="an integer is divided by 0"):
        call(artifact, "divided", [x.numpy(), y.numpy()], [expected])


@pytest.mark.parametrize("operator", ["Neg", "Div"])
def test_large_integers_of_onnx(operator: str, tmp_path: Path) -> None:
    x = np.array([2**53 + 1, -(2**62) - 1, 7, -8], np.int64)
    inputs = [x] if operator == "Neg" else [x, np.array([1, 3, -2, 3], np.int64)]
    names = "xy"[: len(inputs)]
    values = [helper.make_tensor_value_info(name, 7, [4]) for name in names]
    graph = helper.make_graph(
        [helper.make_node(operator, list(names), ["z"])],
        "g",
        values,
        [helper.make_tensor_value_info("z", 7, [4])],
    )
    opset = [helper.make_opsetid("", 21)]
    path = tmp_path / "model.onnx"
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    path.write_bytes(model.SerializeToString())
    expected = -x if operator == "Neg" else np.array([2**53 + 1, -((2**62 + 1) // 3), -3, -2])
    artifact = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    (got,) = call(artifact, "model", inputs, [x])
    np.testing.assert_array_equal(got, expected)


# By operator: its attributes, the constants behind the input, whether the second input is taken.
OPERATORS: dict[str, tuple[str, dict[str, Any], list[int], bool]] = {
    "added": ("Add", {}, [], True),
    "subtracted": ("Sub", {}, [], True),
    "multiplied": ("Mul", {}, [], True),
    "divided": ("Div", {}, [], True),
    "modulo": ("Mod", {}, [], True),
    "fmod": ("Mod", {"fmod": 1}, [], True),
    "largest": ("Max", {}, [], True),
    "smallest": ("Min", {}, [], True),
    "less": ("Less", {}, [], True),
    "greater or equal": ("GreaterOrEqual", {}, [], True),
    "equal": ("Equal", {}, [], True),
    "clipped": ("Clip", {}, [5, 200], False),
    "as floats": ("Cast", {"to": 1}, [], False),
    "as doubles": ("Cast", {"to": 11}, [], False),
    "as long integers": ("Cast", {"to": 7}, [], False),
    "where it is largest": ("ArgMax", {"axis": 1}, [], False),
    "reduced": ("ReduceMax", {"keepdims": 0}, [], False),
    "inverted": ("BitwiseNot", {}, [], False),
}
TYPES = {"uint8": 2, "uint16": 4, "uint32": 12, "uint64": 13}
# What torch-mlir has no conversion for.
REFUSED = {
    "uint64": {"as floats", "as doubles"},
}


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("name", OPERATORS)
def test_onnx(name: str, element: str, tmp_path: Path) -> None:
    """What they give, or a refusal by name."""
    operator, attributes, constants, is_binary = OPERATORS[name]
    dtype = np.dtype(element)
    largest = np.iinfo(dtype).max
    # Numbers whose highest bit is set.
    x, y = (np.where(one > 127, largest - 255 + one.astype(dtype), one) for one in (X, Y))
    inputs = [x, y] if is_binary else [x]
    number = TYPES[element]
    values = [helper.make_tensor_value_info(word, number, [2, 4]) for word in "xy"[: len(inputs)]]
    weights = [helper.make_tensor(f"c{i}", number, [], [one]) for i, one in enumerate(constants)]
    words = ["x", *(["y"] if is_binary else []), *(weight.name for weight in weights)]
    node = helper.make_node(operator, words, ["z"], **attributes)
    opset = [helper.make_opsetid("", 21)]

    def model(result: int, shape: Any) -> Any:
        results = [helper.make_tensor_value_info("z", result, shape)]
        graph = helper.make_graph([node], "g", values, results, weights)
        return helper.make_model(graph, opset_imports=opset, ir_version=10)

    fed = dict(zip("xy", inputs, strict=False))
    (expected,) = ReferenceEvaluator(model(number, None)).run(None, fed)
    expected = np.asarray(expected)
    result = helper.np_dtype_to_tensor_dtype(expected.dtype)
    path = tmp_path / "model.onnx"
    path.write_bytes(model(result, list(expected.shape)).SerializeToString())
    if name in REFUSED.get(element, ()):
        with pytest.raises(aotc.InputError, match=rf"onnx\.{operator}"):
            aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
        return
    artifact = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    (got,) = call(artifact, "model", inputs, [expected])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("element", TYPES)
def test_onnx_casts_of_floats(element: str, tmp_path: Path) -> None:
    """To numbers whose highest bit is set, or a refusal by name."""
    most = float(np.iinfo(element).max)
    x = np.array([0, 1.75, most / 2 - 3, most / 2 + 3, most / 4 * 3], np.float32)
    values = helper.make_tensor_value_info("x", 1, [5])
    results = helper.make_tensor_value_info("z", TYPES[element], [5])
    node = helper.make_node("Cast", ["x"], ["z"], to=TYPES[element])
    graph = helper.make_graph([node], "g", [values], [results])
    opset = [helper.make_opsetid("", 21)]
    path = tmp_path / "model.onnx"
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    path.write_bytes(model.SerializeToString())
    if element in ("uint32", "uint64"):
        with pytest.raises(aotc.InputError, match=r"onnx\.Cast"):
            aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
        return
    artifact = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    (got,) = call(artifact, "model", [x], [x.astype(element)])
    np.testing.assert_array_equal(got, x.astype(element))


CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "padded": {"pads": [1, 0, 1, 2], "strides": [2, 1]},
    "same": {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    "of groups": {"group": 2, "dilations": [1, 2]},
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_quantized_convolutions(name: str, bias: bool, tmp_path: Path) -> None:
    """With a scale for each channel, which is the bias's, too."""
    options = CONVOLUTIONS[name]
    generator = np.random.default_rng(0)
    x = generator.integers(0, 256, (1, 4, 5, 6)).astype(np.uint8)
    filters = generator.integers(-128, 128, (4, 4 // options.get("group", 1), 3, 3))
    scales = np.array([0.01, 0.02, 0.03, 0.04], np.float32)
    numbers = np.array([5, -7, 100000, 30000], np.int32) if bias else None
    check_quantized_convolution(x, filters, scales, numbers, tmp_path, **options)


def test_a_quantized_convolution_of_one_channel(tmp_path: Path) -> None:
    """Whose bias has the scale of that channel: the import crashed."""
    generator = np.random.default_rng(0)
    x = generator.integers(0, 256, (1, 5, 7, 8)).astype(np.uint8)
    filters = generator.integers(-128, 128, (1, 5, 3, 3))
    scales, bias = np.array([0.03], np.float32), np.array([700], np.int32)
    check_quantized_convolution(x, filters, scales, bias, tmp_path, strides=[1, 2])


def check_quantized_convolution(
    x: Any, filters: Any, scales: Any, bias: Any | None, folder: Path, **options: Any
) -> None:
    """Compares a QLinearConv of u8 and i8 with ONNX's reference."""
    weights = {
        "x_scale": np.float32(0.02),
        "x_zero": np.uint8(130),
        "w": filters.astype(np.int8),
        "w_scale": scales,
        "w_zero": np.zeros(len(scales), np.int8),
        "y_scale": np.float32(0.5),
        "y_zero": np.uint8(100),
        **({} if bias is None else {"bias": bias}),
    }
    node = helper.make_node("QLinearConv", ["x", *weights], ["y"], **options)
    opset = [helper.make_opsetid("", 21)]

    def model(shape: Any) -> Any:
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_tensor_value_info("x", 2, x.shape)],
            [helper.make_tensor_value_info("y", 2, shape)],
            [numpy_helper.from_array(np.asarray(one), key) for key, one in weights.items()],
        )
        return helper.make_model(graph, opset_imports=opset, ir_version=10)

    (expected,) = ReferenceEvaluator(model(None)).run(None, {"x": x})
    path = folder / "model.onnx"
    path.write_bytes(model(list(expected.shape)).SerializeToString())
    artifact = aotc.build(path, emit="shared", out=f"{folder}/", chips=CHIP)
    (got,) = call(artifact, "model", [x], [expected])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("kinds", [(np.uint8, np.int8), (np.int8, np.uint8), (np.uint8, np.uint8)])
def test_quantized_products(kinds: tuple[Any, Any], tmp_path: Path) -> None:
    """Of bytes of all values, with zero points: of a matrix of any rows, and of a constant one."""
    generator = np.random.default_rng(0)

    def random(kind: Any, shape: tuple[int, ...]) -> Any:
        limits = np.iinfo(kind)
        return generator.integers(limits.min, limits.max + 1, shape).astype(kind)

    a, b = random(kinds[0], (37, 70)), random(kinds[1], (70, 50))
    constants = {"b": b, "a_zero": random(kinds[0], ()), "b_zero": random(kinds[1], ())}
    type_ = helper.np_dtype_to_tensor_dtype(np.dtype(kinds[0]))
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b", "a_zero", "b_zero"], ["c"])],
        "g",
        [helper.make_tensor_value_info("a", type_, ["rows", 70])],
        [helper.make_tensor_value_info("c", 6, ["rows", 50])],
        [numpy_helper.from_array(one, name) for name, one in constants.items()],
    )
    opset = [helper.make_opsetid("", 21)]
    path = tmp_path / "model.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()
    )
    library = aotc.load(aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP))
    library.set_device("cpu")
    differences = [
        one.astype(np.int64) - constants[f"{name}_zero"] for name, one in (("a", a), ("b", b))
    ]
    np.testing.assert_array_equal(library["model"](a), differences[0] @ differences[1])


def test_a_quantized_convolution_of_large_sums(tmp_path: Path) -> None:
    """Sums of more than 24 bits are exact: here, all but 0, 1 and 2 of them the bias takes away."""
    generator = np.random.default_rng(0)
    x = generator.integers(250, 256, (1, 65, 3, 3)).astype(np.uint8)
    filters = generator.integers(120, 128, (3, 65, 3, 3)).astype(np.int8)
    sums = np.einsum("nchw,ochw->o", x.astype(np.int64), filters.astype(np.int64))
    weights = {
        "x_scale": np.float32(1),
        "x_zero": np.uint8(0),
        "w": filters,
        "w_scale": np.ones(3, np.float32),
        "w_zero": np.zeros(3, np.int8),
        "y_scale": np.float32(1),
        "y_zero": np.uint8(100),
        "bias": (np.arange(3) - sums).astype(np.int32),
    }
    graph = helper.make_graph(
        [helper.make_node("QLinearConv", ["x", *weights], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 2, x.shape)],
        [helper.make_tensor_value_info("y", 2, [1, 3, 1, 1])],
        [numpy_helper.from_array(np.asarray(one), key) for key, one in weights.items()],
    )
    path = tmp_path / "model.onnx"
    opset = [helper.make_opsetid("", 21)]
    path.write_bytes(
        helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()
    )
    artifact = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    expected = np.array([100, 101, 102], np.uint8).reshape(1, 3, 1, 1)
    (got,) = call(artifact, "model", [x], [expected])
    np.testing.assert_array_equal(got, expected)


def test_unsigned_arguments_and_results_of_any_size(tmp_path: Path) -> None:
    """MLIR's types do not say that they are; the manifest does."""
    x = torch.tensor([200, 100], dtype=torch.uint8)
    size = torch.export.Dim("n", min=2)

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, signed: Any, x: Any) -> Any:
            self.calls.add_(1)
            return x + 1 + signed.to(torch.uint8)

    given = torch.tensor([0], dtype=torch.int8), x
    shapes = ({}, {0: size})
    aotc.torch.build(Module(), given, dynamic_shapes=shapes, out=f"{tmp_path}/", chips=CHIP)
    arguments = json.loads((tmp_path / "module.json").read_text())["entries"][0]["arguments"]
    assert {one["name"]: one["dtype"] for one in arguments if one["dtype"] != "f32"} == {
        "signed": "i8",
        "x": "u8",
    }
    library = aotc.load(tmp_path / "lib" / "libmodule.so")
    got = library["module"](*(one.numpy() for one in given), state=library.state())
    got = np.asarray(got)
    assert (got.dtype, got.tolist()) == (np.uint8, [201, 101])


@pytest.mark.parametrize("has_rows", [False, True])
def test_a_quantized_product_with_zero_points_of_rows(has_rows: bool, tmp_path: Path) -> None:
    """And a row of those of columns; the first matrix's may be left out."""
    generator = np.random.default_rng(0)
    a = generator.integers(0, 256, (37, 70)).astype(np.uint8)
    constants = {
        "b": generator.integers(-128, 128, (70, 50)).astype(np.int8),
        "a_zero": generator.integers(0, 256, 37).astype(np.uint8) * np.uint8(has_rows),
        "b_zero": generator.integers(-128, 128, (1, 50)).astype(np.int8),
    }
    names = ["a", "b", "a_zero" if has_rows else "", "b_zero"]
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", names, ["c"])],
        "g",
        [helper.make_tensor_value_info("a", 2, a.shape)],
        [helper.make_tensor_value_info("c", 6, [37, 50])],
        [numpy_helper.from_array(one, name) for name, one in constants.items()],
    )
    opset = [helper.make_opsetid("", 21)]
    path = tmp_path / "model.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()
    )
    left = a.astype(np.int64) - constants["a_zero"].reshape(-1, 1)
    right = constants["b"].astype(np.int64) - constants["b_zero"]
    artifact = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    (got,) = call(artifact, "model", [a], [np.empty((37, 50), np.int32)])
    np.testing.assert_array_equal(got, left @ right)
