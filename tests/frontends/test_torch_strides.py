"""Views of what a decomposition of aotc gives other strides than the operator does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

import aotc.torch  # noqa: E402

functional = torch.nn.functional


def _windows(x: Any) -> Any:
    """Windows of one pixel: no copy is needed, because the norm's channels are last."""
    y = functional.layer_norm(x.permute(0, 2, 3, 1), (8,))
    return y.view(x.shape[0], 6, 1, 6, 1, 8).permute(0, 1, 3, 2, 4, 5).reshape(-1, 1, 1, 8)


# Of images whose channels are last.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "transposed convolution": lambda x: functional.conv_transpose2d(x, KERNEL, stride=2),
    "adaptive average": lambda x: functional.adaptive_avg_pool2d(x, 4),
    "adaptive maximum": lambda x: functional.adaptive_max_pool2d(x, 4),
    "bilinear": lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "lerp": lambda x: torch.lerp(x, 2 * x, 0.25),
}
KERNEL = torch.linspace(-1, 1, 8 * 4 * 2 * 2).view(8, 4, 2, 2)


class Views(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        images = x.to(memory_format=torch.channels_last)
        found = [function(images).permute(0, 2, 3, 1) for function in FUNCTIONS.values()]
        return [_windows(x), *(one.view(x.shape[0], -1) for one in found)]


@pytest.mark.parametrize("is_any", [False, True], ids=["one size", "any batch"])
def test_views(is_any: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 8, 6, 6)
    shapes = {"x": {0: torch.export.Dim.AUTO}} if is_any else None
    options: dict[str, Any] = {"chips": "sm_80", "dynamic_shapes": shapes}
    built = aotc.torch.build(Views(), (x,), name="views", out=f"{tmp_path}/", **options)
    for given in (x, torch.randn(5, 8, 6, 6)) if is_any else (x,):
        for ours, wanted in zip(built(given), Views()(given), strict=True):
            torch.testing.assert_close(ours, wanted, rtol=1e-5, atol=1e-5)
