"""`aotc.load`: arrays that are just as an entry takes them are called by pointers, with the results
and errors of any other call."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import aotc
from aotc.errors import InputError

SOURCE = """\
func.func @step(%x: tensor<3x4xf32>, %s: f32, %sum: memref<3x4xf32>, %one: tensor<3x1xf32>)
    -> (tensor<3x4xf32>, tensor<3x1xf32>) attributes {llvm.emit_c_interface} {
  %empty = tensor.empty() : tensor<3x4xf32>
  %filled = linalg.fill ins(%s : f32) outs(%empty : tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = linalg.mul ins(%x, %filled : tensor<3x4xf32>, tensor<3x4xf32>)
    outs(%empty : tensor<3x4xf32>) -> tensor<3x4xf32>
  %old = bufferization.to_tensor %sum restrict : memref<3x4xf32> to tensor<3x4xf32>
  %new = linalg.add ins(%old, %y : tensor<3x4xf32>, tensor<3x4xf32>)
    outs(%empty : tensor<3x4xf32>) -> tensor<3x4xf32>
  bufferization.materialize_in_destination %new in restrict writable %sum
    : (tensor<3x4xf32>, memref<3x4xf32>) -> ()
  %few = tensor.empty() : tensor<3x1xf32>
  %twice = linalg.add ins(%one, %one : tensor<3x1xf32>, tensor<3x1xf32>)
    outs(%few : tensor<3x1xf32>) -> tensor<3x1xf32>
  return %y, %twice : tensor<3x4xf32>, tensor<3x1xf32>
}
func.func @any(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?xf32>)
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x4xf32>
  %y = linalg.negf ins(%x : tensor<?x4xf32>) outs(%x : tensor<?x4xf32>) -> tensor<?x4xf32>
  %empty = tensor.empty(%rows) : tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %sums = linalg.reduce ins(%x : tensor<?x4xf32>) outs(%zeros : tensor<?xf32>) dimensions = [1]
    (%a: f32, %b: f32) {
      %sum = arith.addf %a, %b : f32
      linalg.yield %sum : f32
    }
  return %y, %sums : tensor<?x4xf32>, tensor<?xf32>
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> aotc.Library:
    folder = tmp_path_factory.mktemp("direct")
    (folder / "direct.mlir").write_text(SOURCE)
    built = aotc.build(
        folder / "direct.mlir", emit=("shared", "manifest"), out=f"{folder}/out/", chips=["sm_80"]
    )
    return aotc.load(built)


def arguments(kind: str) -> list[Any]:
    rng = np.random.default_rng(7)
    x, total, one = (rng.random(shape, np.float32) for shape in ((3, 4), (3, 4), (3, 1)))
    if kind == "numpy":
        return [x, 2.5, total, one]
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return [torch.from_numpy(x), 2.5, torch.from_numpy(total), torch.from_numpy(one)]


def is_direct(entry: Any, given: list[Any]) -> bool:
    found = entry.direct_results(entry._bind(given, {}))
    return found is not None


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_direct_call_gives_what_any_other_does(library: aotc.Library, kind: str) -> None:
    entry = library.step
    x, s, total, one = arguments("numpy")
    given = arguments(kind)
    direct = entry.direct_results(entry._bind(given, {}))
    assert direct is not None
    again = arguments(kind)
    looked_at = entry.results(entry._bind(again, {}))
    for found in (direct, looked_at):
        assert [type(one) for one in found] == [type(given[0])] * 2
        np.testing.assert_array_equal(found[0], x * np.float32(s))
        np.testing.assert_array_equal(found[1], one + one)
    for changed in (given[2], again[2]):
        np.testing.assert_array_equal(changed, total + x * np.float32(s))


def test_other_arrays_get_a_closer_look(library: aotc.Library) -> None:
    """An error says what is wrong with them, or they are converted."""
    x, s, total, one = arguments("numpy")
    for first in (np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2]):
        assert not is_direct(library.step, [first, s, total, one])
        with pytest.raises(aotc.LibraryError, match="the type says 1"):
            library.step(first, s, total, one)
    assert not is_direct(library.step, [x, np.float32(s), total, one])
    y, _ = library.step(x, np.float32(s), total, one)
    np.testing.assert_array_equal(y, x * np.float32(s))
    read_only = total.copy()
    read_only.flags.writeable = False
    for wrong, message in (
        ([x.astype(np.float64), s, total, one], r"'x' .*: its elements are f64"),
        ([x.T, s, total, one], r"'x' .*: its shape is \(4, 3\)"),
        ([x, s, read_only, one], r"'sum' .*: it is read-only"),
        ([x, s, total, [1.0]], r"'one' .*: list is no array"),
        ([x, "s", total, one], r"'s' .* cannot be 's'"),
    ):
        with pytest.raises(InputError, match=message):
            library.step(*wrong)


def test_other_tensors_get_a_closer_look(library: aotc.Library) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, s, total, one = arguments("torch")
    for first in (x.T.contiguous().T, torch.nn.Parameter(x), x.double(), x[:, :1], x.to("meta")):
        assert not is_direct(library.step, [first, s, total, one])
    assert not is_direct(library.step, [x, s, total.numpy(), one])
    with pytest.raises(InputError, match=r"requires? grad"):
        library.step(x.clone().requires_grad_(), s, total, one)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_sizes_are_told_and_returned_memory_is_adopted(library: aotc.Library, kind: str) -> None:
    entry, made = library.any, []
    for rows in (3, 1, 5):
        x = np.arange(4 * rows, dtype=np.float32).reshape(rows, 4)
        given = x if kind == "numpy" else pytest.importorskip("torch").from_numpy(x)
        direct = entry.direct_results(entry._bind([given], {}))
        assert direct is not None
        assert [type(one) for one in direct] == [type(given)] * 2
        made.append((x, direct))
    # Each result keeps its own memory, after later calls and without the library's name for it.
    gc.collect()
    for x, (negative, total) in made:
        np.testing.assert_array_equal(negative, -x)
        np.testing.assert_array_equal(total, x.sum(1))


def test_returned_memory_is_freed_once(
    library: aotc.Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[int] = []
    monkeypatch.setattr(library, "free", freed.append)
    first, second = library.any(np.ones((2, 4), np.float32))
    places = [first.ctypes.data, second.ctypes.data]
    view = second[1:]
    del first, second
    assert freed == places[:1]
    del view
    assert freed == places


def test_other_sizes_get_a_closer_look(library: aotc.Library) -> None:
    empty = np.ones((0, 4), np.float32)
    assert not is_direct(library.any, [empty])
    assert library.any(empty)[0].shape == (0, 4)
    for shape in ((3, 5), (4,), (1, 3, 4)):
        assert not is_direct(library.any, [np.ones(shape, np.float32)])
        with pytest.raises(InputError, match="its shape is"):
            library.any(np.ones(shape, np.float32))
