"""A network of f16 whose images have their channels last inside, against PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.support import call  # noqa: E402

import aotc.torch  # noqa: E402

nn = torch.nn


def _layer(inputs: int, outputs: int, side: int, stride: int = 1, groups: int = 1) -> Any:
    layer = nn.Conv2d(inputs, outputs, side, stride, side // 2, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs))


class Network(nn.Module):
    """A stem of three colours, pools, a residual block, filters of single channels and of groups,
    channels that are weighted by their means, branches that are joined, and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = _layer(3, 16, 7, 2)
        self.block = nn.ModuleList([_layer(16, 24, 3), _layer(24, 16, 3)])
        self.single, self.point = _layer(16, 16, 3, groups=16), _layer(16, 32, 1)
        self.groups = _layer(32, 32, 3, groups=4)
        self.weights = nn.ModuleList([nn.Conv2d(32, 8, 1), nn.Conv2d(8, 32, 1)])
        self.joined, self.last = _layer(64, 40, 3, 2), nn.Linear(40, 5)

    def forward(self, image: Any) -> Any:
        x = nn.functional.max_pool2d(torch.relu(self.stem(image)), 3, 2, 1)
        first, second = self.block
        x = torch.relu(second(torch.relu(first(x))) + x)
        x = nn.functional.hardswish(self.single(x))
        x = nn.functional.avg_pool2d(self.point(x), 3, 1, 1)
        first, second = self.weights
        mean = torch.relu(first(x.mean((2, 3), keepdim=True)))
        x = x * torch.sigmoid(second(mean))
        x = torch.relu(self.joined(torch.cat([x, self.groups(x)], 1)))
        return self.last(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


@pytest.mark.parametrize(
    ("dtype", "limit", "options"),
    [("float16", 3e-3, {}), ("float16", 3e-3, {"any": True}), ("bfloat16", 3e-2, {})],
)
def test_network(dtype: str, limit: float, options: dict[str, bool], tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    torch.manual_seed(0)
    module = Network().eval()
    for tensor in module.buffers():
        if tensor.is_floating_point():
            tensor.uniform_(0.5, 1.5)
    module = module.to(getattr(torch, dtype))
    image = torch.randn(3, 3, 61, 75).to(getattr(torch, dtype))
    with torch.no_grad():
        exact = module.double()(image.double()).numpy()
    module = module.to(image.dtype)
    sizes = ({0: torch.export.Dim("batch", min=1)},) if options else None
    artifact = aotc.torch.build(
        *(module, (image,)),
        dynamic_shapes=sizes,
        name="network",
        out=f"{tmp_path}/",
        chips="sm_90a",
    )
    values = image.view(torch.int16).numpy()
    given = values.view(np.float16 if dtype == "float16" else ml_dtypes.bfloat16)
    [found] = call(artifact, "network", [given], [exact.astype(given.dtype)])
    error = np.abs(np.asarray(found, np.float64) - exact).max() / np.abs(exact).max()
    assert error < limit
