"""`aotc.load`: results that are not given are arrays of the caller's framework; `out=`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import aotc

# By name: the element type in MLIR, the operation, NumPy's type.
TYPES: dict[str, tuple[str, str, Any]] = {
    "f16": ("f16", "addf", np.float16),
    "bf16": ("bf16", "addf", ml_dtypes.bfloat16),
    "f32": ("f32", "addf", np.float32),
    "f64": ("f64", "addf", np.float64),
    "i1": ("i1", "ori", np.bool_),
    "i8": ("i8", "addi", np.int8),
    "i16": ("i16", "addi", np.int16),
    "i32": ("i32", "addi", np.int32),
    "i64": ("i64", "addi", np.int64),
}
TWICE = """\
func.func @{name}(%x: tensor<{size}x4x{type}>) -> tensor<{size}x4x{type}>
    attributes {{llvm.emit_c_interface}} {{
  %e = tensor.empty({sizes}) : tensor<{size}x4x{type}>
  %r = linalg.generic {{
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  }} ins(%x : tensor<{size}x4x{type}>) outs(%e : tensor<{size}x4x{type}>) {{
  ^bb0(%a: {type}, %o: {type}):
    %b = arith.{operation} %a, %a : {type}
    linalg.yield %b : {type}
  }} -> tensor<{size}x4x{type}>
  return %r : tensor<{size}x4x{type}>
}}
"""
OTHERS = """\
func.func @several(%x: tensor<3xf32>, %s: f32) -> (tensor<3xf32>, f32, tensor<3xf32>)
    attributes {llvm.emit_c_interface} {
  %a = linalg.add ins(%x, %x : tensor<3xf32>, tensor<3xf32>)
    outs(%x : tensor<3xf32>) -> tensor<3xf32>
  %b = linalg.mul ins(%x, %x : tensor<3xf32>, tensor<3xf32>)
    outs(%x : tensor<3xf32>) -> tensor<3xf32>
  %t = arith.addf %s, %s : f32
  return %a, %t, %b : tensor<3xf32>, f32, tensor<3xf32>
}
func.func @nothing_given() -> (tensor<2xi32>, tensor<f32>) attributes {llvm.emit_c_interface} {
  %a = arith.constant dense<[7, 8]> : tensor<2xi32>
  %b = arith.constant dense<0.5> : tensor<f32>
  return %a, %b : tensor<2xi32>, tensor<f32>
}
func.func @counted(%x: tensor<?xf32>) -> (index, tensor<?xf32>, tensor<?xf32>)
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?xf32>
  %a = linalg.add ins(%x, %x : tensor<?xf32>, tensor<?xf32>)
    outs(%x : tensor<?xf32>) -> tensor<?xf32>
  return %n, %a, %a : index, tensor<?xf32>, tensor<?xf32>
}
func.func @flattened(%x: tensor<?x4xf32>) -> tensor<?xf32> attributes {llvm.emit_c_interface} {
  %y = tensor.collapse_shape %x [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  return %y : tensor<?xf32>
}
func.func @out_is_a_name(%x: tensor<3xf32>, %out: f32) -> tensor<3xf32>
    attributes {llvm.emit_c_interface} {
  %a = linalg.fill ins(%out : f32) outs(%x : tensor<3xf32>) -> tensor<3xf32>
  return %a : tensor<3xf32>
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> aotc.Library:
    dim = "  %z = arith.constant 0 : index\n  %n = tensor.dim %x, %z : tensor<?x4x{type}>\n"
    text = OTHERS
    for name, (type_, operation, _) in TYPES.items():
        words = {"type": type_, "operation": operation}
        text += TWICE.format(name=f"of_3_{name}", size="3", sizes="", **words)
        of_any = TWICE.format(name=f"of_any_{name}", size="?", sizes="%n", **words)
        text += of_any.replace("  %e =", f"{dim.format(**words)}  %e =")
    out = tmp_path_factory.mktemp("outputs")
    library = aotc.load(aotc.build(text, emit="shared", out=f"{out}/", name="many", chips="sm_80"))
    library.set_device("cpu")
    return library


def numbers(name: str) -> Any:
    return (np.arange(12).reshape(3, 4) % 5).astype(TYPES[name][2])


def twice(x: Any) -> Any:
    return x | x if x.dtype == np.bool_ else x + x


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("kind", ["of_3", "of_any"])
def test_arrays_of_numpy(kind: str, name: str, library: aotc.Library) -> None:
    x = numbers(name)
    got = library[f"{kind}_{name}"](x)
    assert isinstance(got, np.ndarray)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, twice(x))
    bits = library[f"{kind}_bf16"](numbers("bf16").view(np.uint16))
    assert bits.dtype == np.uint16


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("kind", ["of_3", "of_any"])
def test_tensors_of_pytorch(kind: str, name: str, library: aotc.Library) -> None:
    torch = pytest.importorskip("torch", reason="pip install 'aotc[torch]'")
    x = torch.arange(12).reshape(3, 4).remainder(5)
    x = x.to(
        torch.from_numpy(np.zeros(0, TYPES[name][2])).dtype if name != "bf16" else torch.bfloat16
    )
    got = library[f"{kind}_{name}"](x)
    assert isinstance(got, torch.Tensor)
    assert got.dtype == x.dtype
    assert got.equal(x | x if name == "i1" else x + x)
    assert library[f"{kind}_{name}"](torch.nn.Parameter(x, requires_grad=False)).equal(got)
    out = torch.empty_like(x)
    assert library[f"{kind}_{name}"](x, out=out) is out
    assert out.equal(got)


@pytest.mark.parametrize("kind", ["of_3", "of_any"])
def test_arrays_of_jax(kind: str, library: aotc.Library) -> None:
    jnp = pytest.importorskip("jax.numpy", reason="pip install 'aotc[jax]'")
    for name in ("f16", "bf16", "f32", "i1", "i8", "i32"):
        x = jnp.asarray(numbers(name))
        got = library[f"{kind}_{name}"](x)
        assert type(got) is type(x)
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(got), twice(numbers(name)))


def test_jax_has_no_wide_numbers(library: aotc.Library) -> None:
    jax = pytest.importorskip("jax", reason="pip install 'aotc[jax]'")
    x = numbers("f64")

    class OfJax:
        __dlpack__ = x.__dlpack__
        __dlpack_device__ = x.__dlpack_device__
        devices = jax.numpy.ones(3).devices

    OfJax.__module__ = "jax"
    for kind in ("of_3", "of_any"):
        with pytest.raises(aotc.InputError, match=r"and JAX has no f64.*"):
            library[f"{kind}_f64"](OfJax())
    with pytest.raises(aotc.InputError, match="cannot be an array of JAX"):
        library.of_3_f32(jax.numpy.ones((3, 4)), stream=0)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_sizes(rows: int, library: aotc.Library) -> None:
    x = np.ones((rows, 4), np.float32)
    got = library.of_any_f32(x)
    assert got.shape == (rows, 4)
    np.testing.assert_array_equal(got, 2 * x)


def test_order_and_numbers(library: aotc.Library) -> None:
    """Results come in the module's order, whether they are arguments, numbers or memory."""
    x = np.array([1, 2, 3], np.float32)
    a, t, b = library.several(x, 0.5)
    assert (a.tolist(), t, b.tolist()) == ([2, 4, 6], 1.0, [1, 4, 9])
    n, a, b = library.counted(x)
    assert (n, a.tolist(), b.tolist()) == (3, [2, 4, 6], [2, 4, 6])
    assert not np.shares_memory(a, b)
    a, b = library.nothing_given()
    assert (a.tolist(), a.dtype, b[()], b.shape) == ([7, 8], np.int32, 0.5, ())


def test_views_are_not_the_argument(library: aotc.Library) -> None:
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    got = library.flattened(x)
    assert got.shape == (8,)
    np.testing.assert_array_equal(got, x.reshape(-1))
    x[:] = 0
    assert got[7] == 7


def test_arrays_that_are_given(library: aotc.Library) -> None:
    """By position or name they are written, and not returned; `out=` is returned."""
    x = np.array([1, 2, 3], np.float32)
    one, other = np.empty_like(x), np.empty_like(x)
    assert library.several(x, 0.5, one, other) == 1.0
    assert (one.tolist(), other.tolist()) == ([2, 4, 6], [1, 4, 9])
    t, b = library.several(x, 0.5, result0=one)
    assert (t, b.tolist()) == (1.0, [1, 4, 9])
    a, t, b = library.several(x, 0.5, out=(None, None, other))
    assert b is other
    assert a is not one
    n, a, b = library.counted(x, out=[None, None, other])
    assert b is other
    assert (n, other.tolist()) == (3, [2, 4, 6])
    assert library.out_is_a_name(x, out=2).tolist() == [2, 2, 2]


WRONG: list[tuple[str, Any, str]] = [
    ("of_3_f32", lambda x, y: {"out": x}, "the array for 'result0' shares memory with 'x'"),
    ("of_3_f32", lambda x, y: {"result0": x[::-1]}, "'result0' shares memory with 'x'"),
    ("of_3_f32", lambda x, y: {"out": (y, y)}, "has 1 results, and out= has 2 arrays"),
    ("of_3_f32", lambda x, y: {"out": y[:2]}, "its shape is (2, 4)"),
    ("of_3_f32", lambda x, y: {"out": y.astype(np.float64)}, "its elements are f64"),
    ("of_3_f32", lambda x, y: {"result0": y, "out": y}, "'result0' is given twice"),
    ("of_any_f32", lambda x, y: {"out": y[:2]}, "has the shape (2, 4), and the result (3, 4)"),
    ("of_any_f32", lambda x, y: {"out": y.astype(int)}, "has elements of i64, and the result of"),
    ("several", lambda x, y: {"x": x[0, :3], "s": 1, "out": (None, 1, None)}, "is a number"),
]


@pytest.mark.parametrize(("entry", "named", "message"), WRONG)
def test_wrong_arrays(entry: str, named: Any, message: str, library: aotc.Library) -> None:
    x, y = np.ones((3, 4), np.float32), np.zeros((3, 4), np.float32)
    with pytest.raises(aotc.InputError) as raised:
        library[entry](**{"x": x, **named(x, y)})
    assert message in str(raised.value)


def test_out_of_any_size_may_be_an_argument(library: aotc.Library) -> None:
    """It is copied there when all of it is computed."""
    x = np.ones((3, 4), np.float32)
    assert library.of_any_f32(x, out=x) is x
    assert (x == 2).all()


def test_nothing_is_returned_twice(library: aotc.Library, tmp_path: Path) -> None:
    """Memory of a result is freed once, when its last view is gone."""
    freed: list[int] = []
    free, library.free = library.free, freed.append  # type: ignore[method-assign]
    try:
        for _ in range(3):
            library.counted(np.ones(5, np.float32))
        assert len(set(freed)) == len(freed) <= 3
    finally:
        del library.free
    for address in freed:
        free(address)
