"""Assignments to rows that a list names, against PyTorch's."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

import aotc  # noqa: E402
import aotc.torch  # noqa: E402


class Rows(torch.nn.Module):
    """Of each dimension, by one place and by several, from the end, named twice, of many types."""

    def forward(self, x: Any, y: Any, one: Any, several: Any, flags: Any) -> Any:
        first, last, middle, narrow = x.clone(), x.clone(), x.clone(), x.half()
        first[several] = y[:, :1]
        last[..., one] = 2
        middle[:, several.int()] = y[:3, :3, None, 0]
        narrow[:, one] = y[:3, :1].half().expand(3, 1, 5)
        integers = (x * 40).to(torch.uint8)
        integers[several] = 200
        truths = x > 0
        truths[:, several] = flags
        copied = x.index_copy(1, several.abs(), torch.ones(3, 3, 5))
        both = x.clone()
        both[several, several] = 7.0
        added = x.index_put((several,), y[:, :1], accumulate=True)
        results = (first, last, middle, narrow, integers, truths, copied, both, added)
        return tuple(result.float() for result in results)


class ManyRows(torch.nn.Module):
    def forward(self, x: Any, rows: Any, y: Any) -> Any:
        return x.index_put((rows,), y)


def test_many_rows(tmp_path: Path) -> None:
    """Each of them is not compared with all others, which would take a minute."""
    torch.manual_seed(0)
    rows = torch.randint(0, 200_000, (150_000,))
    # What is named twice is assigned the same twice.
    inputs = (torch.zeros(200_000), rows, rows.float() + 1)
    built = aotc.torch.build(
        ManyRows(), inputs, name="many", emit="shared", out=f"{tmp_path}/", chips="sm_90"
    )
    library = aotc.load(built)
    library.set_device("cpu")
    result = np.full(200_000, 77, np.float32)
    begin = time.process_time()
    library.many(*(tensor.numpy() for tensor in inputs), result)
    assert time.process_time() - begin < 10
    np.testing.assert_array_equal(result, ManyRows()(*inputs).numpy())


def test_rows(tmp_path: Path) -> None:
    inputs = (
        torch.randn(3, 4, 5).abs(),
        torch.randn(3, 4, 5),
        torch.tensor([-2]),
        torch.tensor([0, -1, 0]),
        torch.tensor([True, False, True]).reshape(3, 1),
    )
    built = aotc.torch.build(
        Rows(), inputs, name="rows", emit="shared", out=f"{tmp_path}/", chips="sm_90"
    )
    library = aotc.load(built)
    library.set_device("cpu")
    expected = Rows()(*inputs)
    results = [np.full(tensor.shape, 77, np.float32) for tensor in expected]
    library.rows(*(tensor.numpy() for tensor in inputs), *results)
    for got, tensor in zip(results, expected, strict=True):
        np.testing.assert_array_equal(got, tensor.numpy())
    for wrong in (4, -5, 2**40, -(2**63)):
        arrays = [tensor.numpy().copy() for tensor in inputs]
        arrays[2 if abs(wrong) > 4 else 3][:] = wrong
        with pytest.raises(aotc.LibraryError, match="an index is out of bounds"):
            library.rows(*arrays, *results)
