"""Writes to places that are tensors themselves: scatters, and assignments to indexed elements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.support import call  # noqa: E402

import aotc.torch  # noqa: E402
from aotc.library.opened import LibraryError  # noqa: E402

# Of 4 x 6 x 10 numbers, places along dimension 1, several of them equal, and 4 x 3 x 10 numbers.
SCATTERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "numbers": lambda x, i, y: x.scatter(1, i, y),
    "one number": lambda x, i, y: x.scatter(1, i, 2.5),
    "sums": lambda x, i, y: x.scatter_add(1, i, y),
    "products": lambda x, i, y: x.scatter_reduce(1, i, y, "prod"),
    "least": lambda x, i, y: x.scatter_reduce(1, i, y, "amin"),
    "largest, without what was there": lambda x, i, y: x.scatter_reduce(
        1, i, y, "amax", include_self=False
    ),
    "means": lambda x, i, y: x.scatter_reduce(1, i, y, "mean"),
    **{
        f"{reduce} alone": lambda x, i, y, reduce=reduce: x.scatter_reduce(
            -2, i, y, reduce, include_self=False
        )
        for reduce in ("sum", "prod", "mean", "amin")
    },
    "least integers alone": lambda x, i, y: (
        (x * 9).int().scatter_reduce(1, i, (y * 9).int(), "amin", include_self=False)
    ),
    "means of integers": lambda x, i, y: (x * 9).int().scatter_reduce(1, i, (y * 9).int(), "mean"),
    "means of rows": lambda x, i, y: x.index_reduce(1, i[0, :, 0], y, "mean", include_self=False),
    "rows": lambda x, i, y: x.index_copy(1, i[0, :, 0].argsort(), y),
    "sums of rows": lambda x, i, y: x.index_add(1, i[0, :, 0], y),
    "filled rows": lambda x, i, y: x.index_fill(1, i[0, :, 0], 3.0),
    "filled rows from the end": lambda x, i, y: x.index_fill(1, i[0, :, 0] - 6, 3.0),
    "places": lambda x, i, y: x.index_put((i[0, :, 0] % 4, i[0, :, 1]), y[0, :3], accumulate=True),
    "from the end": lambda x, i, y: x.index_put((i[0, :, 0] - 6 + 2,), y[:3, :1], accumulate=True),
    "of integers": lambda x, i, y: (x * 9).int().scatter_add(1, i, (y * 9).int()),
    "of truths": lambda x, i, y: (x > 0).scatter(1, i, y > 0),
    "part of it": lambda x, i, y: x.scatter_add(1, i[:2, :, :5], y),
    "of doubles": lambda x, i, y: x.double().scatter_add(1, i, y.double()),
}


class Scatter(torch.nn.Module):
    def __init__(self, *functions: Callable[..., Any]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, *inputs: Any) -> Any:
        return tuple(function(*inputs) for function in self.functions)


def built(module: Any, inputs: tuple[Any, ...], folder: Path) -> Any:
    files: dict[str, Any] = {"emit": "shared", "out": f"{folder}/", "chips": "sm_80"}
    return aotc.torch.build(module, inputs, name="scatters", **files)


def test_scatters(tmp_path: Path) -> None:
    torch.manual_seed(0)
    # The rows of "from the end" are of a result with four.
    inputs = (torch.randn(4, 6, 10), torch.randint(2, 6, (4, 3, 10)), torch.randn(4, 3, 10))
    inputs[1][0, :, 0] = torch.tensor([5, 2, 5])
    module = Scatter(*(function for name, function in SCATTERS.items() if name != "rows"))
    eager = [result.contiguous().numpy() for result in module(*inputs)]
    artifact = built(module, inputs, tmp_path)
    found = call(artifact, "scatters", [x.numpy() for x in inputs], eager)
    for ours, theirs in zip(found, eager, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_many_updates_of_few_places(tmp_path: Path) -> None:
    """Graph convolutions add a row of each edge's to that of its node."""
    torch.manual_seed(1)
    edges, places = torch.randn(5000, 3), torch.randint(0, 7, (5000,))
    inputs = (torch.zeros(9, 3), edges, places)
    module = Scatter(lambda x, y, i: x.index_add(0, i, y))
    exact = module(*(one.double() if one.is_floating_point() else one for one in inputs))
    artifact = built(module, inputs, tmp_path)
    (found,) = call(artifact, "scatters", [one.numpy() for one in inputs], [np.zeros((9, 3), "f4")])
    np.testing.assert_allclose(found, exact[0].numpy(), rtol=1e-4, atol=1e-3)


def _most_to_one(shape: tuple[int, ...], places: int) -> Any:
    return torch.where(torch.rand(shape) < 0.5, 7, torch.randint(0, places, shape))


# More updates of one place than are ranked (1,024), rows whose index is expanded, few places, and
# more than are combined in parts (512).
MANY: dict[str, Callable[[], tuple[Any, ...]]] = {
    "rows": lambda: (
        lambda x, i, y: x.index_add(0, i, y),
        torch.randn(4096, 3),
        _most_to_one((4500,), 4096),
        torch.randn(4500, 3),
    ),
    "elements": lambda: (
        lambda x, i, y: x.scatter_add(1, i, y),
        torch.randn(3, 3000),
        _most_to_one((2, 3500), 3000),
        torch.randn(2, 3500),
    ),
    "columns": lambda: (
        lambda x, i, y: x.scatter_add(0, i, y),
        torch.randn(3000, 3),
        _most_to_one((3500, 2), 3000),
        torch.randn(3500, 3),
    ),
    "an expanded index": lambda: (
        lambda x, i, y: x.scatter_reduce(0, i.unsqueeze(1).expand(-1, 5), y, "prod"),
        torch.randn(40, 5),
        torch.randint(0, 40, (70,)),
        torch.randn(70, 5),
    ),
    "means of an expanded index": lambda: (
        lambda x, i, y: x.scatter_reduce(
            0, i.unsqueeze(1).expand(-1, 5), y, "mean", include_self=False
        ),
        torch.randn(90, 5),
        _most_to_one((3000,), 80),
        torch.randn(3000, 5),
    ),
    "of few places": lambda: (
        lambda x, i, y: x.scatter_reduce(1, i, y, "amax"),
        torch.randn(3, 20),
        torch.randint(0, 20, (2, 3000)),
        torch.randn(2, 3000),
    ),
    "of 600 places": lambda: (
        lambda x, i, y: x.index_add(0, i, y),
        torch.randn(600),
        torch.randint(0, 600, (40000,)),
        torch.randn(40000),
    ),
    "rows of 70": lambda: (
        lambda x, i, y: x.index_add(0, i, y) + x.scatter_add(0, i[:, None] + torch.arange(70), y),
        torch.randn(700, 70),
        torch.randint(0, 600, (900,)),
        torch.randn(900, 70),
    ),
    "the last of many": lambda: (
        lambda x, i, y: x.scatter(0, i, y),
        torch.randn(90),
        torch.cat([torch.randint(0, 40, (70,)), torch.arange(30, 80)]),
        torch.randn(120).sort().values,
    ),
    "extrema of small integers": lambda: (
        lambda x, i, y: x.scatter_reduce(0, i, y, "amin"),
        torch.randint(-99, 99, (90,), dtype=torch.int16),
        torch.randint(0, 90, (2000,)),
        torch.randint(-9999, 9999, (2000,), dtype=torch.int16),
    ),
}


def test_an_expanded_index_is_one_of_rows(tmp_path: Path) -> None:
    """Means of graphs' neighbours count rows, not elements, and write no other indices."""
    x, i, y = torch.randn(40, 64), torch.randint(0, 40, (70,)), torch.randn(70, 64)
    mean = Scatter(
        lambda x, i, y: x.scatter_reduce(
            0, i[:, None].expand(-1, 64), y, "mean", include_self=False
        )
    )
    place = tmp_path / "mean.mlir"
    aotc.torch.build(mean, (x, i, y), emit="mlir", out=place, chips="sm_80")
    assert "x2xi32>" not in place.read_text()
    assert "x2xi64>" not in place.read_text()


def test_the_cpu_device_combines_updates_in_order(tmp_path: Path) -> None:
    """In one kernel of its own: it neither sorts nor ranks them."""
    function, *inputs = MANY["of 600 places"]()
    place = tmp_path / "updates.mlir"
    aotc.torch.build(Scatter(function), tuple(inputs), emit="mlir", out=place, chips="sm_80")
    launches = [line for line in place.read_text().splitlines() if "gpu.launch_func" in line]
    assert sum("_kernels_cpu::" in line for line in launches) == 1


@pytest.mark.parametrize("name", MANY)
def test_many_updates(name: str, tmp_path: Path) -> None:
    """Updates of a place are combined in their order: the bits are the same on each run."""
    torch.manual_seed(2)
    function, *inputs = MANY[name]()
    module = Scatter(function)
    wide = [one.double() if one.is_floating_point() else one for one in inputs]
    (expected,) = (one.numpy() for one in module(*wide))
    artifact = built(module, tuple(inputs), tmp_path)
    like = np.zeros(expected.shape, module(*inputs)[0].numpy().dtype)
    found = [call(artifact, "scatters", [x.numpy() for x in inputs], [like])[0] for _ in range(2)]
    np.testing.assert_array_equal(*found)
    if name == "the last of many":
        # PyTorch leaves any of them.
        numbers = {int(place): k for k, place in enumerate(inputs[1])}
        for place, k in numbers.items():
            expected[place] = wide[2][k]
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("place", [6, -1])
def test_a_place_out_of_bounds_is_an_error(place: int, tmp_path: Path) -> None:
    inputs = (torch.zeros(4, 6, 10), torch.zeros(4, 3, 10, dtype=torch.int64), torch.ones(4, 3, 10))
    artifact = built(Scatter(SCATTERS["numbers"]), inputs, tmp_path)
    inputs[1][2, 1, 7] = place
    with pytest.raises(LibraryError, match="an index is out of bounds"):
        call(
            artifact,
            "scatters",
            [one.numpy() for one in inputs],
            [np.zeros((4, 6, 10), np.float32)],
        )


EMPTIES: dict[str, Any] = {
    "index_add": lambda x, i, y: x.index_add(0, i, y),
    "index_add to none": lambda x, i, y: y.index_add(0, i, y, alpha=2),
    "index_put": lambda x, i, y: x.index_put((i,), y),
    "rows": lambda x, i, y: x[i] + y,
    "parts": lambda x, i, y: y.view(0, 2, 5).sum(0),
    "places of a number": lambda x, i, y: (x > 0).nonzero_static(size=11),
    "places, and no more": lambda x, i, y: (x > 0).nonzero_static(size=70, fill_value=-7),
    "no places": lambda x, i, y: y.nonzero_static(size=2),
}


def test_no_rows(tmp_path: Path) -> None:
    """Tensors without elements; and places that are fewer or more than asked for."""
    inputs = (torch.randn(6, 10), torch.zeros(0, dtype=torch.int64), torch.zeros(0, 10))
    module = Scatter(*EMPTIES.values())
    eager = [result.numpy() for result in module(*inputs)]
    found = call(built(module, inputs, tmp_path), "scatters", [x.numpy() for x in inputs], eager)
    for name, ours, theirs in zip(EMPTIES, found, eager, strict=True):
        np.testing.assert_allclose(ours, theirs, err_msg=name)


ROWS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "index_add": lambda x, i, y: x.index_add(0, i, y, alpha=2),
    "put": lambda x, i, y: x.index_put((i - 6,), y),
    "put a number": lambda x, i, y: x.index_put((i,), torch.tensor(3.0)),
    "sums": lambda x, i, y: x.index_put((i, i), y[:, 0], accumulate=True),
    "columns": lambda x, i, y: torch.ops.aten.index_put(x.t() + 1, (None, i), y.t()),
    "booleans": lambda x, i, y: (x > 1).index_put((i,), y > 0, accumulate=True),
    "rows of booleans": lambda x, i, y: (x > 1).index_add(0, i, y > 0),
}


def test_any_number_of_rows(tmp_path: Path) -> None:
    """Also none."""
    rows = torch.export.Dim("rows")
    module, x = Scatter(*ROWS.values()), torch.randn(6, 10)
    # Of several updates of a place, the last one would count, in an order that is not defined.
    calls = [
        (x, torch.arange(6)[-n:] if n else torch.arange(0), torch.randn(n, 10)) for n in (5, 0)
    ]
    calls.append((x, torch.arange(1), torch.randn(1, 10)))
    options: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    sizes = {"inputs": (None, {0: rows}, {0: rows})}
    artifact = aotc.torch.build(module, calls[0], name="rows", dynamic_shapes=sizes, **options)
    for inputs in calls:
        expected = [one.numpy() for one in module(*inputs)]
        found = call(artifact, "rows", [one.numpy() for one in inputs], expected)
        for name, ours, theirs in zip(ROWS, found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5, err_msg=name)


def test_booleans(tmp_path: Path) -> None:
    """An even number of true ones is true, too, and true is the larger one."""
    functions = (
        lambda x, i, y: x.index_add(0, i, y),
        lambda x, i, y: x.index_put((i,), y, accumulate=True),
        lambda x, i, y: x.scatter_add(0, i.unsqueeze(1).expand(4, 10), y),
        lambda x, i, y: x.scatter_reduce(0, i.unsqueeze(1).expand(4, 10), y, "amax"),
        lambda x, i, y: (~x).scatter_reduce(0, i.unsqueeze(1).expand(4, 10), ~y, "amin"),
        lambda x, i, y: x.scatter_reduce(
            0, i.unsqueeze(1).expand(4, 10), y, "amin", include_self=False
        ),
    )
    inputs = (torch.zeros(6, 10).bool(), torch.tensor([1, 3, 1, 0]), torch.ones(4, 10).bool())
    inputs[2][2, ::2] = False
    module = Scatter(*functions)
    expected = [one.numpy() for one in module(*inputs)]
    given = [one.numpy() for one in inputs]
    for got, one in zip(
        call(built(module, inputs, tmp_path), "scatters", given, expected), expected, strict=True
    ):
        np.testing.assert_array_equal(got, one)


ANY_NUMBER: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sums": lambda x, i, y: x.scatter_add(1, i, y),
    "products": lambda x, i, y: x.scatter_reduce(1, i, y, "prod"),
    "largest": lambda x, i, y: x.scatter_reduce(1, i, y, "amax", include_self=False),
    "least": lambda x, i, y: x.scatter_reduce(1, i, y, "amin"),
    "small integers": lambda x, i, y: (x * 9).char().scatter_add(1, i, (y * 9).char()),
}


@pytest.mark.parametrize("has_any_places", [False, True])
def test_any_number_of_updates(*, has_any_places: bool, tmp_path: Path) -> None:
    """With many updates of few places, parts of the updates are combined first: always, if the
    places are known to be few, or if the numbers of a call say so."""
    torch.manual_seed(3)
    lines, updates, places = (torch.export.Dim(name) for name in ("lines", "updates", "places"))
    of_places = {0: lines, 1: places} if has_any_places else {}
    of_updates = {0: lines, 1: updates} if has_any_places else {1: updates}
    module = Scatter(*ANY_NUMBER.values())
    counts = [(3, 300, 20), (3, 7, 20), (3, 0, 20)]
    counts += [(2, 4000, 33), (1, 40, 600), (4, 3, 1)] if has_any_places else []
    calls = [
        (torch.randn(b, p), torch.randint(0, p, (b, n)), 1 + torch.randn(b, n) / 9)
        for b, n, p in counts
    ]
    options: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    sizes = {"inputs": (of_places, of_updates, of_updates)}
    artifact = aotc.torch.build(module, calls[0], name="any", dynamic_shapes=sizes, **options)
    for inputs in calls:
        expected = [one.numpy() for one in module(*inputs)]
        found = call(artifact, "any", [one.numpy() for one in inputs], expected)
        for name, ours, theirs in zip(ANY_NUMBER, found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4, err_msg=name)
