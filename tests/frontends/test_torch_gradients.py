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
    "antialiased": lambda x: functional.interpolate(
        x, size=(5, 3), mode="bilinear", antialias=True
    ),
    "trilinear": lambda x: functional.interpolate(x[None], size=(5, 9, 7), mode="trilinear"),
    "average": lambda x: functional.avg_pool2d(x, 3, 2, 1),
    "average of elements": lambda x: functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "divisor": lambda x: functional.avg_pool2d(x, (2, 3), divisor_override=5, ceil_mode=True),
    "adaptive average": lambda x: functional.adaptive_avg_pool2d(x, (3, 5)),
    "adaptive maximum": lambda x: functional.adaptive_max_pool2d(x, (4, 2)),
    "average of volumes": lambda x: functional.avg_pool3d(x, (2, 3, 3), (1, 3, 2), 1),
    "divisor of volumes": lambda x: functional.avg_pool3d(
        x, 3, 2, ceil_mode=True, divisor_override=5
    ),
    "adaptive average of volumes": lambda x: functional.adaptive_avg_pool3d(x, (2, 3, 5)),
    "maximum of volumes": lambda x: functional.max_pool3d(x, (2, 3, 3), (1, 2, 3), 1),
    "adaptive maximum of volumes": lambda x: functional.adaptive_max_pool3d(x, (2, 4, 2)),
    "unfold": lambda x: x.unfold(2, 4, 2),
    "transposed convolution": lambda x: functional.conv_transpose2d(
        x, WEIGHT.to(x), stride=2, padding=1, output_padding=1
    ),
    "grouped transposed convolution": lambda x: functional.conv_transpose2d(
        x, x[:, :2, :3, :4].reshape(4, 3, 2, 2), stride=2, groups=2
    ),
    "grouped convolution": lambda x: functional.conv2d(
        x, x[:, :2, :3, :4].reshape(6, 2, 2, 2), stride=(2, 1), padding=1, dilation=(1, 2), groups=2
    ),
    "depthwise convolution": lambda x: functional.conv2d(x, x[0, :, None, :3, 1:3], groups=4),
    "depthwise convolution with steps": lambda x: functional.conv2d(
        x, x[0, :, None, :3, 1:3], stride=(3, 2), padding=(3, 1), dilation=(1, 2), groups=4
    ),
    "attention": lambda x: functional.scaled_dot_product_attention(x, x.sin(), x.cos()),
    "causal attention": lambda x: functional.scaled_dot_product_attention(
        x, x.sin(), x.cos(), is_causal=True
    ),
    "masked attention": lambda x: functional.scaled_dot_product_attention(
        x, x.sin(), x.cos(), torch.ones(8, 8, dtype=torch.bool).tril(1)
    ),
    "leaky of random slopes": lambda x: functional.rrelu(x) + x,
    # Their parts are traced: the factors, and the check of them.
    "inverse": lambda x: torch.linalg.inv(_regular(x)),
    "solution": lambda x: torch.linalg.solve(_regular(x), x),
    "Cholesky factor": lambda x: torch.linalg.cholesky(_regular(x)),
    "inverse of a Cholesky factor": lambda x: torch.cholesky_inverse(
        torch.linalg.cholesky(_regular(x))
    ),
    "determinant": lambda x: torch.linalg.slogdet(_regular(x))[1],
}


def _regular(x: Any) -> Any:
    """Positive definite matrices."""
    return 0.1 * x @ x.mT + torch.eye(8).to(x)


def _build(step: Callable[[Any], Any], x: Any, folder: Path) -> Any:
    program = torch.export.export(make_fx(step)(x), (x,))
    return aotc.torch.build(program, (), name="step", out=f"{folder}/", chips=[])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name: str, tmp_path: Path) -> None:
    def step(x: Any) -> Any:
        return torch.func.grad(lambda x: FUNCTIONS[name](x).square().sum())(x)

    torch.manual_seed(0)
    x = torch.randn(2, 4, 8, 8)
    built = _build(step, x, tmp_path)
    expected = step(x.double())
    error = (built(x).double() - expected).abs().max() / expected.abs().max()
    assert error <= 5e-6


@pytest.mark.parametrize("name", ["bilinear", "average", "adaptive average"])
def test_what_is_no_number_stays_where_it_is(name: str, tmp_path: Path) -> None:
    """An element whose gradient does not depend on a result is not NaN because that is."""
    x = torch.randn(1, 2, 8, 8)
    weights = torch.ones_like(FUNCTIONS[name](x))
    weights[0, 0, 1, 3], weights[0, 1, 2, 1] = torch.nan, torch.inf

    def step(x: Any) -> Any:
        return torch.func.grad(lambda x: (FUNCTIONS[name](x) * weights).sum())(x)

    got, expected = _build(step, x, tmp_path)(x), step(x)
    torch.testing.assert_close(got, expected, equal_nan=True)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (1, 2, 0, 3)])
def test_attention_has_its_querys_layout(order: tuple[int, ...], tmp_path: Path) -> None:
    """Steps view what eager PyTorch's attention gives, which has the query's order of dimensions:
    that of nn.MultiheadAttention has the batch behind the sequence."""

    def attend(x: Any) -> Any:
        q = x.permute(order)
        found = functional.scaled_dot_product_attention(q, q.sin(), q.cos())
        back = [order.index(dim) for dim in range(4)]
        return found.permute(back).contiguous().view(-1, 5) * x.reshape(-1, 5)

    def step(x: Any) -> Any:
        return torch.func.grad(lambda x: attend(x).sum())(x)

    x = torch.randn(3, 2, 4, 5)
    torch.testing.assert_close(_build(step, x, tmp_path)(x), step(x))


def test_a_singular_matrix_is_an_error_of_the_call(tmp_path: Path) -> None:
    """The check that is traced beside an inverse is kept."""
    x = torch.eye(4)
    built = _build(lambda x: torch.linalg.inv(x) * 2, x, tmp_path)
    assert torch.equal(built(x), 2 * x)
    with pytest.raises(aotc.LibraryError, match="is singular"):
        built(torch.zeros(4, 4))
