"""`aotc.load`: the memory of large results is kept for the results of later calls, when no array
uses it any more."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import aotc
from aotc.library import kept

ROWS, COLUMNS = 300, 256
TYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i8": np.int8}
SOURCE = """\
func.func @{type}(%x: tensor<300x256x{type}>) -> tensor<300x256x{type}>
    attributes {{llvm.emit_c_interface}} {{
  %r = linalg.add ins(%x, %x : tensor<300x256x{type}>, tensor<300x256x{type}>)
    outs(%x : tensor<300x256x{type}>) -> tensor<300x256x{type}>
  return %r : tensor<300x256x{type}>
}}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> aotc.Library:
    folder = tmp_path_factory.mktemp("kept")
    source = folder / "kept.mlir"
    source.write_text("".join(SOURCE.format(type=name) for name in TYPES))
    built = aotc.build(source, emit=("shared", "manifest"), out=f"{folder}/out/", chips=["sm_80"])
    return aotc.load(built)


def matrix(kind: str, number: int) -> Any:
    x = np.full((ROWS, COLUMNS), number, np.float32)
    if kind == "numpy":
        return x
    return pytest.importorskip("torch", reason="PyTorch is not installed").from_numpy(x)


def address(array: Any) -> int:
    place: int = np.asarray(array).ctypes.data
    return place


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_memory_of_a_dead_result_is_that_of_the_next(library: aotc.Library, kind: str) -> None:
    x = matrix(kind, 1)
    first = library.f32(x)
    place = address(first)
    assert place % 64 == 0
    assert type(first) is type(x)
    del first
    assert address(library.f32(x)) == place


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_memory_of_a_view_is_not_kept(library: aotc.Library, kind: str) -> None:
    rows = []
    for number in range(5):
        rows.append(library.f32(matrix(kind, number))[number:][1])
    assert len({address(row) for row in rows}) == 5
    for number, row in enumerate(rows):
        np.testing.assert_array_equal(row, np.full(COLUMNS, 2 * number, np.float32))


@pytest.mark.parametrize("name", TYPES)
def test_elements_are_of_the_results_type(library: aotc.Library, name: str) -> None:
    x = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) % 50
    given = x.astype(TYPES[name])
    for _ in range(2):
        result = library[name](given)
        assert result.dtype == given.dtype
        assert result.flags.writeable
        np.testing.assert_array_equal(result.astype(np.float32), 2 * x)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    tensor = torch.from_numpy(x).to(
        {"f32": torch.float32, "bf16": torch.bfloat16}.get(name, torch.int8)
    )
    found = library[name](tensor)
    assert found.dtype == tensor.dtype
    assert torch.equal(found, tensor + tensor)


def test_the_memory_is_bounded(library: aotc.Library) -> None:
    """Of results that are garbage, so many are kept, and less after calls with other sizes."""
    x = matrix("numpy", 1)
    blocks = kept._KEPT[0][1]
    results = [library.f32(x) for _ in range(100)]
    del results
    assert len(blocks) == blocks.maxlen
    bytes_ = np.ones((ROWS, COLUMNS), np.int8)
    others = [library.i8(bytes_) for _ in range(70)]
    assert not [memory for memory in blocks if memory.size != bytes_.nbytes]
    del others
