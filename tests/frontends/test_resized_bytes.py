"""Images of bytes, resized: every byte is PyTorch's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.support import call  # noqa: E402

import aotc.torch  # noqa: E402

CASES: dict[str, dict[str, Any]] = {
    "smaller": {"size": (9, 7)},
    "larger": {"size": (31, 50)},
    "one dimension": {"size": (23, 7)},
    "corners": {"size": (31, 7), "align_corners": True},
    "by factors": {"scale_factor": (1.7, 0.6)},
    "two pixels": {"size": (2, 1)},
}


class Resized(torch.nn.Module):
    def __init__(self, mode: str, antialias: bool) -> None:
        super().__init__()
        self.options: dict[str, Any] = {"mode": mode, "antialias": antialias}

    def forward(self, x: Any) -> Any:
        resize: Any = torch.nn.functional.interpolate
        return tuple(resize(x, **self.options, **case) for case in CASES.values())


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_bytes(mode: str, antialias: bool, tmp_path: Path) -> None:
    """Of any batch."""
    module = Resized(mode, antialias)

    def images(batch: int) -> Any:
        generator = torch.Generator().manual_seed(batch)
        return torch.randint(0, 256, (batch, 3, 23, 32), dtype=torch.uint8, generator=generator)

    artifact = aotc.torch.build(
        module,
        (images(2),),
        name="resized",
        out=f"{tmp_path}/",
        chips="sm_80",
        optimization=1,
        dynamic_shapes=({0: torch.export.Dim("batch")},),
    )
    for batch in (2, 1):
        x = images(batch)
        expected = [one.numpy() for one in module(x)]
        found = call(artifact, "resized", [x.numpy()], expected)
        for name, one, other in zip(CASES, found, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)
