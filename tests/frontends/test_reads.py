"""Reads at indices that are elements: within bounds, or an error of the call."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

import torch.nn.functional as F  # noqa: E402, N812

import aotc.torch  # noqa: E402

# What reads, and the least and the largest index of 7 rows that PyTorch takes.
READS: dict[str, tuple[Callable[[Any, Any], Any], int, int]] = {
    "index": (lambda x, i: x[i], -7, 6),
    "two indices": (lambda x, i: x[i, i], -5, 4),
    "int32": (lambda x, i: x[i.int()], -7, 6),
    "index_select": (lambda x, i: torch.index_select(x, 0, i), 0, 6),
    "take": (lambda x, i: torch.take(x, i), -35, 34),
    "gather": (lambda x, i: torch.gather(x, 0, i[:, None].expand(-1, 5)), 0, 6),
    "embedding": (lambda x, i: F.embedding(i, x) * 2 + 1, 0, 6),
    "embedding_bag": (lambda x, i: F.embedding_bag(i[None], x, mode="sum"), 0, 6),
    "one_hot": (lambda x, i: F.one_hot(i, 7).sum(0), 0, 6),
    "one_hot of rank 2": (lambda x, i: x.T @ F.one_hot(i.reshape(2, 2), 7).float().mT, 0, 6),
    "nll_loss": (lambda x, i: F.nll_loss(x[:4], i), 0, 4),
}


@pytest.fixture
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("is_any_size", [False, True])
@pytest.mark.usefixtures("on_cpu")
def test_reads(name: str, is_any_size: bool, tmp_path: Path) -> None:
    function, least, largest = READS[name]

    class Reads(torch.nn.Module):
        def forward(self, x: Any, i: Any) -> Any:
            return function(x, i)

    torch.manual_seed(0)
    x = torch.randn(7, 5)
    index = torch.tensor([least, largest, 1, 2])
    sizes = {"x": {0: torch.export.Dim.AUTO}, "i": None} if is_any_size else None
    built = aotc.torch.build(
        Reads(), (x, index), dynamic_shapes=sizes, out=f"{tmp_path}/", chips="sm_90"
    )
    np.testing.assert_allclose(built(x, index), function(x, index), rtol=1e-5, atol=1e-6)
    for wrong in (least - 1, largest + 1, -(2**40), 2**62):
        bad = index.clone()
        bad[2] = wrong
        if name == "int32" and abs(wrong) >= 2**31:
            continue
        with pytest.raises(aotc.AotcError, match="assertion failed: an index is out of bounds"):
            built(x, bad)
    # The library still works.
    np.testing.assert_allclose(built(x, index), function(x, index), rtol=1e-5, atol=1e-6)


# Constants of equal elements, and what reads at them.
CONSTANTS: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "index": (lambda x, i: x[:, i] * 2, 5),
    "negative index": (lambda x, i: x[:, i] * 2, -6),
    "index_select": (lambda x, i: torch.index_select(x, 1, i), -1),
    "gather": (lambda x, i: torch.gather(x, 1, i[None]), 7),
}


@pytest.mark.parametrize("name", CONSTANTS)
@pytest.mark.parametrize("is_any_size", [False, True])
@pytest.mark.usefixtures("on_cpu")
def test_constant_out_of_bounds(name: str, is_any_size: bool, tmp_path: Path) -> None:
    function, index = CONSTANTS[name]

    class Reads(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x, torch.tensor([index, index]))

    x = torch.randn(7, 5)
    sizes = {"x": {0: torch.export.Dim.AUTO}} if is_any_size else None
    built = aotc.torch.build(Reads(), (x,), dynamic_shapes=sizes, out=f"{tmp_path}/", chips="sm_90")
    with pytest.raises(aotc.AotcError, match="assertion failed: an index is out of bounds"):
        built(x)


@pytest.mark.usefixtures("on_cpu")
def test_selection_of_the_only_row(tmp_path: Path) -> None:
    """Index 0 is in bounds, whether the row is one of a matrix, or a number."""

    class Reads(torch.nn.Module):
        def forward(self, x: Any, y: Any, i: Any, j: Any) -> Any:
            return torch.index_select(x, 0, i), torch.index_select(y, 0, j)

    x, y, zero, one = torch.randn(1, 5), torch.tensor(2.5), torch.tensor([0]), torch.tensor([1])
    args = (x, y, zero, zero.clone())
    built = aotc.torch.build(Reads(), args, out=f"{tmp_path}/", chips="sm_90")
    for got, expected in zip(built(*args), Reads()(*args), strict=True):
        torch.testing.assert_close(got, expected)
    for wrong in ((one, zero), (-one, zero), (zero, one), (zero, -one)):
        with pytest.raises(aotc.AotcError, match="assertion failed: an index is out of bounds"):
            built(x, y, *wrong)


@pytest.mark.usefixtures("on_cpu")
def test_numbers_of_buffers(tmp_path: Path) -> None:
    """A buffer of rank 0 is an index, a bound and a factor."""

    class Reads(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("place", torch.tensor(-2))
            self.register_buffer("factor", torch.tensor(1.5))

        def forward(self, x: Any) -> Any:
            return x[:, self.place], x[: self.place], x * self.factor.item()

    x = torch.randn(7, 5)
    built = aotc.torch.build(Reads(), (x,), out=f"{tmp_path}/", chips="sm_90")
    for got, expected in zip(built(x), Reads()(x), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.usefixtures("on_cpu")
def test_what_is_ignored_is_not_read(tmp_path: Path) -> None:
    class Loss(torch.nn.Module):
        def forward(self, x: Any, i: Any) -> Any:
            return F.cross_entropy(x, i)

    inputs = (torch.randn(4, 5), torch.tensor([0, -100, 4, -100]))
    built = aotc.torch.build(Loss(), inputs, out=f"{tmp_path}/", chips="sm_90")
    np.testing.assert_allclose(built(*inputs), Loss()(*inputs), rtol=1e-5)


def test_checks_cost_no_kernel(tmp_path: Path) -> None:
    """A read is one kernel with what is computed from it; what is known to be within bounds is not
    checked; and a file is named without its folder."""

    class Reads(torch.nn.Module):
        def forward(self, x: Any, i: Any) -> Any:
            return F.embedding(i, x) * 2 + 1

    class Resized(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return F.interpolate(x, scale_factor=1.7, mode="bilinear")

    inputs = (torch.randn(70, 256), torch.randint(0, 70, (64,)))
    texts = []
    for module, values in ((Reads(), inputs), (Resized(), (torch.randn(1, 2, 9, 9),))):
        built = aotc.torch.build(
            module, values, emit="device-mlir", out=f"{tmp_path}/d.mlir", chips="sm_90"
        )
        assert built.path is not None
        texts.append(Path(built.path).read_text())
    assert len(re.findall(r"llvm.func @\w+kernel", texts[0])) == 1
    assert texts[0].count("call @__assertfail") == 1
    assert "/" not in re.findall(r'@assert_file_0\("(.*?)\\00"', texts[0])[0]
    assert "__assertfail" not in texts[1]


@pytest.mark.usefixtures("on_cpu")
def test_choice_between_a_tensor_and_itself(tmp_path: Path) -> None:
    """It has the shape of a larger condition."""

    class Chooses(torch.nn.Module):
        def forward(self, condition: Any, x: Any) -> Any:
            return torch.where(condition, x, x)

    condition, x = torch.ones(7, 5, dtype=torch.bool), torch.randn(5)
    built = aotc.torch.build(Chooses(), (condition, x), out=f"{tmp_path}/", chips="sm_90")
    np.testing.assert_array_equal(built(condition, x), x.expand(7, 5))
