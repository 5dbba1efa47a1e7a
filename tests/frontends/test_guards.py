"""Conditions on sizes that PyTorch branched on are checked when the entry is called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

import torch.nn.functional as F  # noqa: E402, N812

import aotc  # noqa: E402
import aotc.torch  # noqa: E402
from aotc.frontends.torch.guards import noted_conditions  # noqa: E402

# A function, sizes of x that it is exported with, others for which its program is the same, and
# others for which it is not.
BRANCHES: dict[str, tuple[Callable[[Any], Any], Any, list[Any], list[Any]]] = {
    "of a remainder": (
        lambda x: x * 2 if x.shape[0] % 3 == 0 else x * 3,
        (6, 4),
        [(9, 1), (3, 5)],
        [(7, 4), (1, 4)],
    ),
    "of two sizes": (
        lambda x: x * 2 if x.shape[0] > x.shape[1] else x * 3,
        (6, 4),
        [(3, 2), (5, 1)],
        [(4, 6), (4, 4)],
    ),
    "of a difference": (
        lambda x: x * 2 if x.shape[0] - x.shape[1] > 0 else x * 3,
        (6, 4),
        [(3, 2), (5, 4)],
        [(4, 4), (3, 4)],
    ),
    "of an inequality": (
        lambda x: x * 2 if x.shape[0] // 2 != 1 else x * 3,
        (6, 4),
        [(4, 2), (1, 4)],
        [(2, 4), (3, 1)],
    ),
    "of a negative remainder": (
        lambda x: x * 2 if (x.shape[0] - x.shape[1]) % 3 != 1 else x * 3,
        (6, 4),
        [(4, 2), (2, 3), (1, 4)],
        [(2, 4), (5, 4)],
    ),
    "of a quotient": (
        lambda x: x * 2 if (x.shape[0] + 1) // 2 * x.shape[1] >= 12 and x.shape[0] < 50 else x * 3,
        (6, 4),
        [(3, 6), (49, 1)],
        [(4, 5), (50, 4)],
    ),
    "of a decomposition": (
        lambda x: F.pixel_unshuffle(x[None, None], 2),
        (8, 8),
        [(4, 6), (12, 8)],
        [(9, 8), (8, 7)],
    ),
    "of none": (lambda x: F.interpolate(x[None], scale_factor=1.5), (6, 4), [(7, 9), (1, 5)], []),
}


def _program(function: Callable[[Any], Any], shape: Any) -> Any:
    class Branches(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    any_size = {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}
    return torch.export.export(Branches(), (torch.rand(shape),), dynamic_shapes=(any_size,))


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_of_sizes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    function, shape, taken, refused = BRANCHES[name]
    # From a file, where the conditions are text.
    file = tmp_path / "program.pt2"
    torch.export.save(_program(function, shape), file)
    library = aotc.load(aotc.build(file, emit="shared", out=f"{tmp_path}/", chips="sm_80"))
    for sizes in (shape, *taken):
        x = torch.rand(sizes)
        np.testing.assert_allclose(library.program(x.numpy()), function(x), rtol=1e-5)
    for sizes in refused:
        with pytest.raises(aotc.AotcError, match="do not fit"):
            library.program(torch.rand(sizes).numpy())


def test_a_branch_of_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")

    class Branches(torch.nn.Module):
        def forward(self, x: Any, n: int) -> Any:
            return x * n if n > 4 else x

    x = torch.rand(3)
    program = torch.export.export(Branches(), (x, 6), dynamic_shapes=(None, torch.export.Dim.AUTO))
    library = aotc.load(aotc.torch.build(program, (), out=f"{tmp_path}/", chips="sm_80"))
    result = np.zeros(3, np.float32)
    library.program(x.numpy(), 5, result)
    np.testing.assert_allclose(result, x * 5)
    with pytest.raises(aotc.AotcError, match="do not fit"):
        library.program(x.numpy(), 4, result)


def test_conditions_are_parsed_not_run(tmp_path: Path) -> None:
    program = _program(lambda x: x * 2, (6, 4))
    mark = tmp_path / "mark"
    for text in (f"open({str(mark)!r}, 'w') and True", "L['x'].__class__", "L['y'].size()[0] == 1"):
        program._guards_code = [text]
        with pytest.raises(aotc.InputError, match="A condition on sizes cannot be checked"):
            noted_conditions(program)
    assert not mark.exists()
    program._guards_code = ["not (L['x'].size()[0] < 3 or -L['x'].size()[1] >= 2)"]
    assert len(noted_conditions(program)) == 1


def test_names_of_parameters_that_end_in_numbers() -> None:
    class Two(torch.nn.Module):
        def forward(self, x: Any, x_1: Any, *rest: Any) -> Any:
            larger = x.shape[0] > x_1.shape[0] and x.shape[0] > rest[0].shape[0]
            return x * 2 if larger else x * 3

    size = {0: torch.export.Dim.AUTO}
    inputs = (torch.rand(5), torch.rand(4), torch.rand(3))
    program = torch.export.export(
        Two(), inputs, dynamic_shapes={"x": size, "x_1": size, "rest": (size,)}
    )
    names = [condition.func.__name__ for condition in noted_conditions(program)]
    assert names == ["StrictGreaterThan", "StrictGreaterThan"]


def test_an_example_that_is_a_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What PyTorch notes of the tensor behind it is no condition on the argument."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")

    class Branches(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2 if x.shape[0] % 2 == 0 else x * 3

    program = torch.export.export(
        Branches(), (torch.rand(5, 3)[:4],), dynamic_shapes=({0: torch.export.Dim.AUTO},)
    )
    program._guards_code.append("L['x']._base.size()[0] == 5")
    library = aotc.load(aotc.torch.build(program, (), out=f"{tmp_path}/", chips="sm_80"))
    x = torch.rand(6, 3)
    np.testing.assert_allclose(library.program(x.numpy()), x * 2)
    with pytest.raises(aotc.AotcError, match="do not fit"):
        library.program(torch.rand(7, 3).numpy())
