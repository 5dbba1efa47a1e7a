"""Operators that aotc writes in terms of others: as PyTorch has them, at their edges, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.support import call  # noqa: E402

import aotc.torch  # noqa: E402

nan, infinity = float("nan"), float("inf")
EDGES = torch.tensor(
    [[0.0, -0.0, 1.5, -2.5, infinity, -infinity, nan, 1e30], [3, 1, 2, 5, 4, 8, 6, 7]]
)
INTEGERS = torch.tensor([[3, -2, 7, 0, 5, 1, -4, 2]])
FLOATS: dict[str, Callable[[Any], Any]] = {
    "isfinite": lambda x: x.isfinite(),
    "signs of zeros": lambda x: x[0, :6].signbit(),
    "copysign": lambda x: torch.copysign(x[1], x[0].nan_to_num(1)),
    "copysign of a number": lambda x: torch.copysign(x, -0.0),
    "hypot": lambda x: torch.hypot(x[0], x[1]),
    "hypot of zeros": lambda x: torch.hypot(x[0, :2], x[0, :2]),
    "fmod": lambda x: x[1].fmod(0.7),
    "nextafter": lambda x: torch.nextafter(x, x.flip(1)) - x,
    "nextafter of zeros": lambda x: torch.nextafter(x[0, :2], x[1, :2] * -1).signbit(),
    "nextafter of doubles": lambda x: torch.nextafter(x.double(), x[1:].double()) == x,
    "fmod of a negative number": lambda x: (-x[1]).fmod(-2.5),
    "roll": lambda x: x.roll(3),
    "roll back": lambda x: x.roll(-2, 1),
    "roll far": lambda x: x.roll((5, 19), (0, 1)),
    "roll around": lambda x: x.roll((2, -8), (0, 1)),
    "roll of one": lambda x: x[1, :1].roll(1),
    "median": lambda x: x[1].median(),
    "median of NaN": lambda x: x.median(),
    "medians": lambda x: x.median(1).values,
    "medians of columns": lambda x: x[:, :4].median(0, keepdim=True).values,
    "nanmedian": lambda x: x.nanmedian(),
    "cdist": lambda x: torch.cdist(x[1:].view(4, 2), x[1:].view(4, 2)),
    "cdist of order 1": lambda x: torch.cdist(x[1:].view(4, 2), x[1:, :4].view(2, 2), p=1),
    "largest distance": lambda x: torch.cdist(x[1:].view(4, 2), x[1:].view(4, 2), p=infinity),
    "pdist": lambda x: torch.nn.functional.pdist(x[1:].view(4, 2)),
    "norm of all": lambda x: torch.linalg.norm(x[1:]),
    "norms of all": lambda x: torch.linalg.vector_norm(x[1], 3, keepdim=True),
    "Frobenius norm": lambda x: torch.linalg.norm(x[1:].view(2, 2, 2), "fro", dim=(0, 2)),
    "all of dimensions": lambda x: x.view(2, 2, 4).isfinite().all((0, 2)),
    "fmin": lambda x: torch.fmin(x[:, :1], x),
    "fmax": lambda x: torch.fmax(x, x[0, 6:7]),
    "angle": lambda x: x.angle(),
    # An angle in f32 is wrong by 87 here.
    "angle of doubles": lambda x: (x.double().angle() - torch.pi) * 1e9,
    "take": lambda x: torch.take(x[1:], torch.tensor(-2)),
    "cumulative product of doubles": lambda x: x[1].cumprod(0, dtype=torch.float64),
    "scatter of products": lambda x: x[1:].scatter(
        1, torch.tensor([[2, 0, 2]]), x[1:, :3], reduce="multiply"
    ),
    "scatter of sums": lambda x: x[1:].scatter(1, torch.tensor([[2, 0, 2]]), 1.5, reduce="add"),
    "windows": lambda x: x[1, 0] * torch.cat([torch.bartlett_window(5), torch.blackman_window(4)]),
    "depthwise volumes": lambda x: torch.nn.functional.conv3d(
        x[1].view(1, 2, 2, 2, 1), x[1].view(2, 1, 2, 2, 1), padding=(1, 0, 0), groups=2
    ),
    "addmv": lambda x: torch.addmv(x[1, :2], x[1].view(2, 4), x[1, :4], beta=0.5, alpha=2),
    "distance": lambda x: torch.dist(x[1], x[1].flip(0)),
    "copies of views": lambda x: torch.cat(
        [
            *(torch.view_copy(x[1], (2, -1)), torch.permute_copy(x[1].view(4, 2), (1, 0))),
            *(torch.stack(torch.unbind_copy(x[1].view(4, 2), 1)), torch.narrow_copy(x, 1, 2, 4)),
            torch.as_strided_copy(x, (2, 4), (1, 2), 8)[:1].nan_to_num(),
        ]
    ),
    "norm of a number": lambda x: torch.linalg.norm(x[1, 0] * -1),
    "searchsorted": lambda x: torch.searchsorted(x[1].sort().values, x[1] + 0.5),
    "searchsorted, right": lambda x: torch.searchsorted(x[1].sort().values, x[1], right=True),
    "histc": lambda x: x[1].histc(4, 1, 6),
    "histc of all": lambda x: x[1].histc(5),
}
# A tensor of rank 0 has the dimension 0, and the dimension -1.
OF_A_NUMBER: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(0),
    "mean, kept": lambda x: x.mean(-1, keepdim=True),
    "prod": lambda x: x.prod(-1),
    "prod, kept": lambda x: x.prod(0, keepdim=True),
    "maximum": lambda x: x.amax(0),
    "minimum of no dimensions": lambda x: x.amin(()),
    "max": lambda x: torch.stack([x.max(0).values, x.max(0).indices]),
    "min": lambda x: torch.stack([x.min(-1).values, x.min(-1).indices]),
    "argmax": lambda x: torch.stack([x.argmax(), x.argmin(0), x.argmax(-1, keepdim=True)]),
    "any and all": lambda x: torch.stack([x.any(0), x.all(-1), x.any(0, keepdim=True)]),
    "variance": lambda x: x.var(0, correction=0),
    "logsumexp": lambda x: x.logsumexp(-1),
    "softmax": lambda x: x.softmax(0),
    "cumulative sum": lambda x: x.cumsum(0),
    "cumulative product": lambda x: x.cumprod(-1),
    "norm": lambda x: torch.linalg.vector_norm(x, 3, 0),
    "kthvalue": lambda x: torch.stack(list(x.kthvalue(1))),
    "topk": lambda x: torch.stack(list(x.topk(1))),
    "sort": lambda x: torch.stack(list(x.sort(0))),
    "scatter": lambda x: x.scatter_add(0, torch.tensor(0), torch.tensor(2.0)),
    "gather": lambda x: x.gather(0, torch.tensor(0)),
    "index_fill": lambda x: x.index_fill(0, torch.tensor([0]), 3.0),
    "permute": lambda x: x.permute(()) * 2,
}
OF_INTEGERS: dict[str, Callable[[Any], Any]] = {
    "third power": lambda x: x**3,
    "power 0": lambda x: x**0,
    "fmax": lambda x: torch.fmax(x, x[0, :1]),
    "angle": lambda x: x.angle(),
    "power of bytes": lambda x: x.to(torch.int8) ** 5,
    "isfinite": lambda x: x.isfinite(),
    "signbit": lambda x: x.signbit(),
    "median": lambda x: x.median(),
    "roll": lambda x: x.roll(1),
    "copysign": lambda x: torch.copysign(x, -x),
    "mean of a place": lambda x: x.scatter_reduce(1, x % 3, x, "mean"),
    "mean without what was there": lambda x: x.scatter_reduce(
        1, x % 3, x - 1, "mean", include_self=False
    ),
}


@pytest.mark.parametrize(
    ("functions", "x"),
    [(FLOATS, EDGES), (OF_A_NUMBER, EDGES[1, 2]), (OF_INTEGERS, INTEGERS)],
    ids=["floats", "number", "integers"],
)
def test_decompositions(functions: dict[str, Any], x: Any, tmp_path: Path) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return tuple(function(x) for function in functions.values())

    eager = [result.contiguous().numpy() for result in Module()(x)]
    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    artifact = aotc.torch.build(Module(), (x,), name="written", **files)
    found = call(artifact, "written", [x.numpy()], eager)
    for name, ours, theirs in zip(functions, found, eager, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6, err_msg=name)
        np.testing.assert_array_equal(np.signbit(ours), np.signbit(theirs), err_msg=name)


def test_products_by_groups(tmp_path: Path) -> None:
    """A matrix for the rows up to each offset, none for an empty group; and batches without."""

    class Module(torch.nn.Module):
        def forward(self, x: Any, weights: Any, ends: Any) -> Any:
            return torch._grouped_mm(x, weights, ends), torch._grouped_mm(weights, weights)

    torch.manual_seed(0)
    x, weights = torch.randn(11, 16).bfloat16(), torch.randn(4, 16, 16).bfloat16()
    ends = torch.tensor([3, 3, 7, 11], dtype=torch.int32)
    groups = zip([0, 3, 3, 7], ends.tolist(), weights.double(), strict=True)
    exact = [torch.cat([x[a:b].double() @ weight for a, b, weight in groups])]
    exact.append(weights.double() @ weights.double())
    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    artifact = aotc.torch.build(Module(), (x, weights, ends), name="groups", **files)
    # NumPy has no bfloat16.
    inputs = [x.view(torch.uint16).numpy(), weights.view(torch.uint16).numpy(), ends.numpy()]
    results = [np.zeros(each.shape, np.uint16) for each in exact]
    for got, expected in zip(call(artifact, "groups", inputs, results), exact, strict=True):
        values = torch.from_numpy(got).view(torch.bfloat16).double()
        torch.testing.assert_close(values, expected, rtol=2**-7, atol=2**-5)


class Sampled(torch.nn.Module):
    def forward(self, x: Any, grid: Any) -> Any:
        sample = torch.nn.functional.grid_sample
        return (
            sample(x, grid, align_corners=False),
            sample(x, grid, padding_mode="border", align_corners=False),
            sample(x, grid, padding_mode="reflection", align_corners=True),
            sample(x, grid, mode="nearest", padding_mode="reflection", align_corners=False),
            sample(x, grid, mode="nearest", padding_mode="border", align_corners=True),
        )


@pytest.mark.parametrize("sizes", [(5, 6), (4, 5, 6)])
def test_images_are_sampled_at_the_points_of_a_grid(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    """Points lie inside and outside of the image or volume, or nowhere. No index is checked."""
    torch.manual_seed(0)
    points = (3, 2, 4)[-len(sizes) :]
    inputs = torch.randn(2, 3, *sizes), torch.rand(2, *points, len(sizes)) * 6 - 3
    nowhere = torch.tensor([torch.nan, torch.inf, -1e20])
    inputs[1].view(2, -1, 4, len(sizes))[0, 0, :3, 1] = nowhere
    # Of images, PyTorch has NaN for a point that is nowhere on CPUs, and zeros on GPUs.
    eager = [result.nan_to_num(0).numpy() for result in Sampled()(*inputs)]
    files: dict[str, Any] = {"out": f"{tmp_path}/", "chips": "sm_80"}
    files |= {"emit": "shared,mlir", "optimization": 1}
    artifact = aotc.torch.build(Sampled(), inputs, name="sampled", **files)
    assert "an index is out of bounds" not in artifact.paths["mlir"].read_text()
    found = call(artifact, "sampled", [one.numpy() for one in inputs], eager)
    for ours, theirs in zip(found, eager, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_rolls_of_any_size(tmp_path: Path) -> None:
    """A shift may be larger than the size, whatever the size is at the call."""

    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.roll(71), x.roll((-11, 3), (0, 1))

    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    some = {0: torch.export.Dim("m"), 1: torch.export.Dim("n")}
    artifact = aotc.torch.build(
        Module(), (torch.randn(5, 40),), name="rolls", dynamic_shapes=(some,), **files
    )
    for shape in ((5, 40), (2, 7), (11, 2)):
        x = torch.randn(shape)
        eager = [each.numpy() for each in Module()(x)]
        for got, expected in zip(call(artifact, "rolls", [x.numpy()], eager), eager, strict=True):
            np.testing.assert_array_equal(got, expected)


def test_rolls_of_nothing(tmp_path: Path) -> None:
    """Shifts that are at most the size of what has elements are not divided by it."""

    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.roll(1, 0), torch.fft.fftshift(x, 0)

    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    some = ({0: torch.export.Dim("n", min=0)},)
    x = torch.randn(5, 4)
    artifact = aotc.torch.build(Module(), (x,), name="rolls", dynamic_shapes=some, **files)
    for count in (0, 1, 6):
        x = torch.randn(count, 4)
        eager = [each.numpy() for each in Module()(x)]
        for got, expected in zip(call(artifact, "rolls", [x.numpy()], eager), eager, strict=True):
            np.testing.assert_array_equal(got, expected)
