"""Means, norms and pools of floats of 16 bits: their sums have more bits, as PyTorch's have."""

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
