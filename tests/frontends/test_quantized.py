"""Quantized programs as PT2E exports them, and torchao's, against PyTorch's own results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

import aotc.torch  # noqa: E402
from aotc.frontends.torch.quantized import quantized_decompositions  # noqa: E402

quantized_decompositions()  # which defines the operators
Q = torch.ops.quantized_decomposed


class Static(torch.nn.Module):
    """Weights by channel, activations by tensor, with and without a sign."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (10, 64), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(10) * 0.02 + 1e-3)
        self.register_buffer("zeros", torch.zeros(10, dtype=torch.int64))

    def forward(self, x: Any) -> Any:
        q = Q.quantize_per_tensor(x, 0.03, 7, -128, 127, torch.int8)
        x = Q.dequantize_per_tensor(q, 0.03, 7, -128, 127, torch.int8)
        weight = Q.dequantize_per_channel(
            self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8
        )
        y = torch.nn.functional.linear(x, weight).relu()
        return q, Q.quantize_per_tensor(y, 0.05, 0, 0, 255, torch.uint8)


class Dynamic(torch.nn.Module):
    """Scales of what is computed: of a tensor, and of each row; groups of a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-8, 8, (10, 64), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(10, 2) * 0.02 + 1e-3)

    def forward(self, x: Any) -> Any:
        scale, zero = Q.choose_qparams(x, -128, 127, 1.2e-7, torch.int8)
        q = Q.quantize_per_tensor(x, scale, zero, -128, 127, torch.int8)
        same, middle = Q.choose_qparams_symmetric(x, 0, 255, 1.2e-7, torch.uint8)
        s = Q.quantize_per_tensor(x, same, middle, 0, 255, torch.uint8)
        scales, zeros = Q.choose_qparams_per_token_asymmetric(x, torch.int8)
        t = Q.quantize_per_token(x, scales, zeros, -128, 127, torch.int8)
        d = Q.dequantize_per_token(t, scales, zeros, -128, 127, torch.int8, torch.float32)
        weight = Q.dequantize_per_channel_group(
            self.weight, self.scales, None, -8, 7, torch.int8, 32, torch.float32
        )
        y = Q.dequantize_per_tensor(q, scale, zero, -128, 127, torch.int8)
        product = torch._int_mm(q.repeat(5, 1), self.weight.t()[:, :8].contiguous())
        return q, s, t, (d + y) @ weight.t(), product, scale, zero


@pytest.mark.parametrize("kind", [Static, Dynamic])
def test_pt2e(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    torch.manual_seed(0)
    module, inputs = kind().eval(), (torch.randn(4, 64),)
    file = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(module, inputs), file)
    aotc.build(file, emit="shared", out=f"{tmp_path}/", chips="sm_80")
    x = torch.randn(4, 64)
    found = aotc.torch.load(tmp_path)(x)
    for one, expected in zip(found, module(x), strict=True):
        assert one.dtype == expected.dtype
        if expected.dtype.is_floating_point:
            np.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(one, expected)


def test_weights_of_torchao(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """int8, int4 by groups, and int8 products, whose weights are subclasses of tensors."""
    quantization = pytest.importorskip("torchao.quantization", reason="torchao is not installed")
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    groups = quantization.IntxWeightOnlyConfig(
        weight_dtype=torch.int4, granularity=quantization.PerGroup(32)
    )
    for number, config in enumerate(
        (
            quantization.Int8WeightOnlyConfig(),
            quantization.Int8DynamicActivationInt8WeightConfig(),
            groups,
        )
    ):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Linear(128, 32)).eval()
        quantization.quantize_(module, config)
        x = torch.randn(20, 64)
        built = aotc.torch.build(module, (x,), out=f"{tmp_path}/{number}/", chips="sm_80")
        np.testing.assert_allclose(built(x), module(x).detach(), rtol=1e-3, atol=1e-4)
