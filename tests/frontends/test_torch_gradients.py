"""Gradients that `make_fx` traced, as of training steps, are those of eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

import aotc.torch  # noqa: E402

functional = torch.nn.functional
WEIGHT = torch.linspace(-1, 1, 4 * 3 * 9).reshape(4, 3, 3, 3).sin()


def _resize(x: Any, mode: str) -> Any:
    return functional.interpolate(x, size=(5, 11), mode=mode)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "nearest": lambda x: _resize(x, "nearest"),
    "nearest of a factor": lambda x: functional.interpolate(x, scale_factor=1.7),
    "nearest-exact": lambda x: _resize(x, "nearest-exact"),
    "bilinear": lambda x: _resize(x, "bilinear"),
    "bicubic": lambda x: _resize(x, "bicubic"),
    "corners": lambda x: functional.interpolate(
        x, size=(5, 11), mode="bilinear", align_corners=True
    ),
    "linear": lambda x: functional.interpolate(x[0], size=13, mode="linear"),
    "trilinear": lambda x: functional.interpolate(x[None], size=(5, 9, 7), mode="trilinear"),
    "average": lambda x: functional.avg_pool2d(x, 3, 2, 1),
    "average of elements": lambda x: functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "divisor": lambda x: functional.avg_pool2d(x, (2, 3), divisor_override=5, ceil_mode=True),
    "adaptive average": lambda x: functional.adaptive_avg_pool2d(x, (3, 5)),
    "adaptive maximum": lambda x: functional.adaptive_max_pool2d(x, (4, 2)),
    "unfold": lambda x: x.unfold(2, 4, 2),
    "transposed convolution": lambda x: functional.conv_transpose2d(
        x, WEIGHT.to(x), stride=2, padding=1, output_padding=1
    ),
    "attention": lambda x: functional.scaled_dot_product_attention(x, x.sin(), x.cos()),
    "causal attention": lambda x: functional.scaled_dot_product_attention(
        x, x.sin(), x.cos(), is_causal=True
    ),
    "masked attention": lambda x: functional.scaled_dot_product_attention(
        x, x.sin(), x.cos(), torch.ones(8, 8, dtype=torch.bool).tril(1)
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name: str, tmp_path: Path) -> None:
    def step(x: Any) -> Any:
        return torch.func.grad(lambda x: FUNCTIONS[name](x).square().sum())(x)

    torch.manual_seed(0)
    x = torch.randn(2, 4, 8, 8)
    program = torch.export.export(make_fx(step)(x), (x,))
    built = aotc.torch.build(program, (), name="step", out=f"{tmp_path}/", chips=[])
    expected = step(x.double())
    error = (built(x).double() - expected).abs().max() / expected.abs().max()
    assert error <= 5e-6
