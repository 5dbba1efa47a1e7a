"""Means, norms, pools and activations of floats of 16 bits: computed in f32, as PyTorch does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")
ml_dtypes = pytest.importorskip("ml_dtypes")

from frontends.support import call  # noqa: E402

import aotc.torch  # noqa: E402

functional = torch.nn.functional
# Of rows of 1024 numbers of 250 to 350: their sums and squares are no f16.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "mean": lambda x: x.mean(1),
    "mean of all": lambda x: x.mean(),
    "norm": lambda x: x.norm(dim=1),
    "norm of order 1": lambda x: (x / 16).norm(1, dim=1),
    "norm of order 3": lambda x: x.norm(3, dim=1),
    "vector norm": lambda x: torch.linalg.vector_norm(x, dim=1),
    "normalized": lambda x: functional.normalize(x, dim=1),
    "variance": lambda x: x.var(1),
    "cosine similarity": lambda x: functional.cosine_similarity(x, x.flip(1), dim=1),
    "distance": lambda x: functional.pairwise_distance(x[:1], x[1:]),
    "average pool": lambda x: functional.avg_pool1d(x.view(2, 1, 1024), 512),
    "global average pool": lambda x: functional.adaptive_avg_pool2d(x.view(2, 1, 32, 32), 1),
    "layer norm": lambda x: functional.layer_norm(x, (1024,)),
}


def _numpy(tensor: Any) -> np.ndarray:
    if tensor.dtype == torch.bfloat16:
        return np.asarray(tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16))
    return np.asarray(tensor.contiguous().numpy())


@pytest.mark.parametrize(
    ("dtype", "precision"), [(torch.float16, 2e-3), (torch.bfloat16, 1.6e-2)], ids=str
)
def test_sums_are_wide(dtype: Any, precision: float, tmp_path: Path) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return tuple(function(x) for function in FUNCTIONS.values())

    torch.manual_seed(0)
    x = (torch.rand(2, 1024) * 100 + 250).to(dtype)
    exact = [function(x.double()).numpy() for function in FUNCTIONS.values()]
    eager = [_numpy(result) for result in Module()(x)]
    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    artifact = aotc.torch.build(Module(), (x,), name="half", **files)
    for name, ours, known in zip(
        FUNCTIONS, call(artifact, "half", [_numpy(x)], eager), exact, strict=True
    ):
        error = np.abs(ours.astype(np.float64) - known).max() / np.abs(known).max()
        assert error <= precision, name


@pytest.mark.parametrize("is_known", [True, False])
def test_rows_that_are_longer_than_the_largest_half(is_known: bool, tmp_path: Path) -> None:
    """Their length is no f16."""

    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return functional.layer_norm(x, x.shape[1:]), x.var(1), x.mean(1)

    x = (torch.arange(140_000).reshape(2, 70_000) % 7 + 1).half()
    exact = [result.numpy() for result in Module()(x.double())]
    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    sizes = None if is_known else ({1: torch.export.Dim("n")},)
    artifact = aotc.torch.build(Module(), (x,), name="long", dynamic_shapes=sizes, **files)
    eager = [one.astype(np.float16) for one in exact]
    for ours, known in zip(call(artifact, "long", [x.numpy()], eager), exact, strict=True):
        np.testing.assert_allclose(ours, known, rtol=4e-3, atol=2e-3)


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "sigmoid": torch.sigmoid,
    "gelu": functional.gelu,
    "gelu by tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "elu": functional.elu,
    "selu": functional.selu,
    "logaddexp2": lambda x: torch.logaddexp2(x, torch.zeros_like(x)),
}


@pytest.mark.parametrize(
    ("dtype", "precision"),
    [(torch.float32, 2e-4), (torch.float16, 1e-3), (torch.bfloat16, 8e-3)],
    ids=str,
)
def test_small_results_have_all_bits(dtype: Any, precision: float, tmp_path: Path) -> None:
    """An activation function is rounded once: what it adds to 1 is not lost."""

    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return tuple(function(x) for function in ACTIVATIONS.values())

    x = -torch.logspace(-3, 0.6, 100).to(dtype)
    eager = [_numpy(result) for result in Module()(x)]
    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    artifact = aotc.torch.build(Module(), (x,), name="small", **files)
    for (name, function), ours in zip(
        ACTIVATIONS.items(), call(artifact, "small", [_numpy(x)], eager), strict=True
    ):
        exact = function(x.double()).numpy()
        assert np.abs(ours.astype(np.float64) / exact - 1).max() <= precision, name


def test_gelu_of_large_negative_numbers(tmp_path: Path) -> None:
    """It is 0, as erf is -1 there."""
    x = -torch.logspace(1, 38, 100)
    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    artifact = aotc.torch.build(torch.nn.GELU(), (x,), name="gelu", **files)
    (got,) = call(artifact, "gelu", [x.numpy()], [np.ones(100, np.float32)])
    assert not got.any()
