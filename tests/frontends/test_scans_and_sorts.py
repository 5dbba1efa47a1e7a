"""Cumulative sums and products, sorts, and what PyTorch makes of them: as PyTorch gives them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.support import call  # noqa: E402

import aotc.torch  # noqa: E402

nan, infinity = float("nan"), float("inf")
# Of an array of 3 x 70 x 5 numbers.
SCANS: dict[str, Callable[[Any], Any]] = {
    "last dimension": lambda x: x.cumsum(-1),
    "first dimension": lambda x: x.cumsum(0),
    "in the middle": lambda x: x.cumsum(1),
    "product": lambda x: (x / x.abs()).cumprod(1),
    "of one": lambda x: x[:, :1].cumsum(1),
    "of none": lambda x: x[:, :0].cumsum(1),
    "long": lambda x: x.flatten().repeat(9).cumsum(0),
    "of integers": lambda x: (x * 100).int().cumsum(1),
    "in another type": lambda x: x.cumsum(1, dtype=torch.float64),
    "of truths": lambda x: (x > 0).cumsum(1),
}
SORTS: dict[str, Callable[[Any], Any]] = {
    "sort": lambda x: tuple(x.sort(dim=1, stable=True)),
    "descending": lambda x: tuple(x.sort(dim=1, descending=True, stable=True)),
    "first dimension": lambda x: x.sort(0).values,
    "argsort": lambda x: x.argsort(dim=1, stable=True),
    "of integers": lambda x: tuple((x * 3).int().sort(dim=1, stable=True)),
    "of truths": lambda x: tuple((x > 0).sort(dim=1, stable=True)),
    "topk": lambda x: tuple(x.topk(4, 1)),
    "topk in any order": lambda x: x.topk(4, 1, sorted=False).values.sum(1),
    "least": lambda x: tuple(x.topk(3, 1, largest=False)),
}


def check(functions: dict[str, Callable[[Any], Any]], inputs: list[Any], folder: Path) -> None:
    class Module(torch.nn.Module):
        def forward(self, *inputs: Any) -> Any:
            return tuple(function(x) for x in inputs for function in functions.values())

    expected = []
    for result in Module()(*inputs):
        expected += result if isinstance(result, tuple) else [result]
    files: dict[str, Any] = {"emit": "shared", "out": f"{folder}/", "chips": "sm_80"}
    artifact = aotc.torch.build(Module(), tuple(inputs), name="ordered", **files)
    eager = [result.contiguous().numpy() for result in expected]
    found = call(artifact, "ordered", [x.numpy() for x in inputs], eager)
    for ours, theirs in zip(found, eager, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=2e-4)


def test_scans(tmp_path: Path) -> None:
    torch.manual_seed(0)
    check(SCANS, [torch.randn(3, 70, 5)], tmp_path)


def test_scans_of_one_long_row(tmp_path: Path) -> None:
    """Of lengths around those at which chunks change."""
    torch.manual_seed(1)
    rows = [torch.randn(n) for n in (2, 31, 32, 33, 1023, 1025, 8192, 8193, 100_000)]
    check({"sum": lambda x: x.cumsum(0)}, rows, tmp_path)


def test_scans_of_several_long_rows(tmp_path: Path) -> None:
    torch.manual_seed(5)
    rows = [torch.randn(3, 2, 9000), torch.randn(2, 8192)]
    check({"sum": lambda x: x.cumsum(-1)}, rows, tmp_path)


def test_sorts(tmp_path: Path) -> None:
    torch.manual_seed(2)
    check(SORTS, [torch.randn(3, 70, 5)], tmp_path)


def test_sorts_of_many_lengths(tmp_path: Path) -> None:
    """Around the lengths of chunks and runs; many elements are equal."""
    torch.manual_seed(6)
    rows = [torch.randint(0, 9, (n,)).float() for n in (1, 7, 8, 9, 16, 17, 31, 65, 1000, 4097)]
    check({"sort": lambda x: tuple(x.sort(dim=0, stable=True))}, rows, tmp_path)


def test_first_elements_of_many_lengths(tmp_path: Path) -> None:
    """As few as a chunk has, and more; of one run, of several, and of a last one that is short."""
    torch.manual_seed(7)

    def first(count: int, x: Any) -> Any:
        return tuple(result[:count] for result in x.sort(dim=0, stable=True))

    functions = {str(count): partial(first, count) for count in (1, 9, 30)}
    rows = [torch.randint(0, 9, (n,)).float() for n in (31, 1000)]
    check(functions, rows, tmp_path)


def test_first_elements_of_many_short_rows(tmp_path: Path) -> None:
    """A thread selects those of a row, on GPUs, too: it is one kernel, which allocates nothing."""
    torch.manual_seed(9)
    x = torch.randint(0, 99, (2, 600, 40)).float()
    x[0, :, 7] = nan

    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.topk(3, -1)

    files: dict[str, Any] = {"emit": "mlir", "out": tmp_path / "x.mlir", "chips": "sm_80"}
    text = aotc.torch.build(Module(), (x,), name="ordered", **files).path.read_text()
    assert text.count("gpu.launch_func") == 1
    assert "memref.alloc(" not in text
    functions = {str(k): lambda x, k=k: tuple(x.topk(k, -1)) for k in (1, 3, 10)}
    # Of equal elements, PyTorch's topk takes any.
    check(functions, [x + torch.arange(40) / 64], tmp_path)


def test_first_elements_of_long_rows(tmp_path: Path) -> None:
    """The CPU device selects them: in stable order, of any type, along any dimension."""
    torch.manual_seed(8)

    def first(dim: int, count: int, descending: bool, x: Any) -> Any:
        found = x.sort(dim=dim, descending=descending, stable=True)
        return tuple(result.narrow(dim, 0, count) for result in found)

    functions = {
        f"{dim} {count} {descending}": partial(first, dim, count, descending)
        for dim, count, descending in ((0, 3, True), (1, 20, True), (1, 1, False), (2, 7, False))
    }
    x = torch.randint(-9, 9, (20, 100, 30)).float()
    x[torch.rand(x.shape) < 0.1] = nan
    x[0] = infinity
    others = [torch.randint(0, 99, (20, 90, 30)).to(type_) for type_ in (torch.int64, torch.uint8)]
    check(functions, [x, *others, torch.randn(20, 80, 30).half()], tmp_path)


def test_rows_are_selected_in_one_kernel_of_the_cpu_device(tmp_path: Path) -> None:
    """It writes the results themselves, and the numbers that are sorted are not in memory."""

    class TopK(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return tuple(x.topk(50, -1))

    place = tmp_path / "first.mlir"
    x = torch.randn(4, 5000)
    aotc.torch.build(TopK(), (x,), name="first", emit="mlir", out=place, chips="sm_80")
    text = place.read_text()
    launches = [line for line in text.splitlines() if "gpu.launch_func" in line]
    (selection,) = (line for line in launches if "@first_kernels_cpu::" in line)
    assert "blocks in (%c4, %c1, %c1)" in selection
    assert "args(%arg1 : memref<4x50xf32>, %arg2 : memref<4x50xi64>" in selection
    assert "memref<4x5000xi64>" not in text


def test_rows_are_sorted_by_digits_on_the_cpu_device(tmp_path: Path) -> None:
    """A kernel sorts rows by the bits of the keys: of all types, of long rows in memory that the
    host allocates, and with the results' own bits."""

    class Sorts(torch.nn.Module):
        def forward(self, *inputs: Any) -> Any:
            results = []
            for i, x in enumerate(inputs):
                ordered = x.sort(dim=-1, descending=i % 3 == 0, stable=True)
                results += ordered if i % 2 == 0 else (one[..., :33] for one in ordered)
            return tuple(results)

    torch.manual_seed(10)
    specials = torch.randn(3, 600)
    for value in (nan, infinity, -infinity, 0.0, -0.0, 1e-42, -1e-42):
        specials[torch.rand(3, 600) < 0.1] = value
    wide = torch.randint(-(2**63), 2**63 - 1, (1, 5000))
    inputs = [specials, specials.double(), wide, wide.int() % 7, wide > 0]
    inputs += [specials.half()[:1], (wide[:, :600] % 256 - 128).to(torch.int8)]
    module, files = Sorts(), {"chips": "sm_80", "name": "ordered"}
    place, out = tmp_path / "x.mlir", f"{tmp_path}/"
    aotc.torch.build(module, tuple(inputs[:1]), emit="mlir", out=place, **files)
    launches = [line for line in place.read_text().splitlines() if "gpu.launch_func" in line]
    assert sum("@ordered_kernels_cpu::" in line for line in launches) == 1
    eager = [result.contiguous().numpy() for result in module(*inputs)]
    artifact = aotc.torch.build(module, tuple(inputs), emit="shared", out=out, **files)
    found = call(artifact, "ordered", [x.numpy() for x in inputs], eager)
    for ours, theirs in zip(found, eager, strict=True):
        np.testing.assert_array_equal(ours.view(np.uint8), theirs.view(np.uint8))


def test_many_first_elements_of_rows_of_unknown_length(tmp_path: Path) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.topk(50)

    x = torch.randn(2, 400)
    sizes = ({1: torch.export.Dim("n", min=50)},)
    files = {"chips": "sm_80", "name": "first", "out": f"{tmp_path}/"}
    artifact = aotc.torch.build(Module(), (x,), dynamic_shapes=sizes, emit="shared", **files)
    for length in (50, 5000):
        x = torch.randn(2, length)
        expected = [one.numpy() for one in x.topk(50)]
        for ours, theirs in zip(
            call(artifact, "first", [x.numpy()], expected), expected, strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


def test_numbers_that_are_none_are_last(tmp_path: Path) -> None:
    values = [2.0, nan, -infinity, 1.0, -nan, infinity, 0.0, nan, -0.0, 3.0, -1.0]
    functions = {name: SORTS[name] for name in ("sort", "descending", "argsort")}
    functions["topk"] = lambda x: x.topk(4, 1).values
    check(functions, [torch.tensor([values, values[::-1]])], tmp_path)


def test_sums_of_16_bits_are_wide(tmp_path: Path) -> None:
    x = torch.full((2, 3000), 30.0, dtype=torch.float16)
    check({"sum": lambda x: x.cumsum(1)}, [x], tmp_path)


def test_numbers_of_rank_0(tmp_path: Path) -> None:
    functions: dict[str, Callable[[Any], Any]] = {
        "sort": lambda x: tuple(x.sort()),
        "topk": lambda x: tuple(x.topk(1)),
        "kthvalue": lambda x: tuple(x.kthvalue(1)),
        "median": lambda x: x.median(),
    }
    check(functions, [torch.tensor(3.5)], tmp_path)
