"""PyTorch's programs against eager PyTorch, on the CPU device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frontends.models import MODELS, made, torch
from frontends.support import call

import aotc
import aotc.torch

CHIP = "sm_90"


def _check(artifact: aotc.Artifact, name: str, model: Any, inputs: Any, tolerance: float) -> None:
    with torch.no_grad():
        expected = model(*inputs).numpy()
    (got,) = call(artifact, name, [tensor.numpy() for tensor in inputs], [expected])
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(
        got.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("name", MODELS)
def test_saved_programs(name: str, batch: int, tmp_path: Path) -> None:
    """`aotc build model.pt2`."""
    model, inputs = made(name, batch)
    path = tmp_path / f"{name}.pt2"
    torch.export.save(torch.export.export(model, inputs), path)
    made_ = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    _check(made_, name, model, inputs, MODELS[name].tolerance)


@pytest.mark.parametrize("name", ["product", "mlp", "block"])
def test_half(name: str, tmp_path: Path) -> None:
    """PyTorch adds up in f32, and rounds; aotc rounds each sum: so the tolerance."""
    model, inputs = made(name, 2)
    halves = tuple(tensor.half() for tensor in inputs)
    built = aotc.torch.build(
        model.half(), halves, name=name, emit="shared", out=f"{tmp_path}/", chips=CHIP
    )
    _check(built, name, model, halves, 2e-2)


@pytest.mark.parametrize("name", ["mlp", "lenet", "block"])
def test_a_batch_of_any_size(name: str, tmp_path: Path) -> None:
    model, inputs = made(name, 3)
    built = aotc.torch.build(
        model,
        inputs,
        dynamic_shapes=({0: torch.export.Dim("batch")},),
        name=name,
        emit="shared",
        out=f"{tmp_path}/",
        chips=CHIP,
    )
    for batch in (2, 5):
        _check(built, name, model, made(name, batch)[1], MODELS[name].tolerance)


def test_names(tmp_path: Path) -> None:
    """The entry is called like the class, and its arguments like those of `forward`."""

    class TwoInputs(torch.nn.Module):
        def forward(self, pixels: Any, scale: Any) -> Any:
            return pixels * scale

    inputs = (torch.ones(3, 4), torch.tensor(2.0))
    built = aotc.torch.build(TwoInputs(), inputs, emit="manifest", out=tmp_path / "x", chips=CHIP)
    assert built.manifest is not None
    (entry,) = built.manifest.entries
    assert entry.name == "two_inputs"
    assert [value.name for value in entry.arguments] == ["pixels", "scale", "result0"]


def test_a_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.pt2"
    path.write_bytes(b"no archive")
    with pytest.raises(aotc.InputError, match=r"torch\.export cannot load"):
        aotc.build(path, out=tmp_path / "x")


def test_what_cannot_be_lowered(tmp_path: Path) -> None:
    class Sorted(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.linalg.eigvals(x)

    with pytest.raises(aotc.InputError, match="torch-mlir cannot lower this program"):
        aotc.torch.build(Sorted(), (torch.ones(3, 3),), out=tmp_path / "x")
