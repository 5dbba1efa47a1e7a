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


class Convolutions(torch.nn.Module):
    """Padded images with a zero point, weights by channel, and a residual."""

    def __init__(self) -> None:
        super().__init__()
        for name, shape in (("first", (16, 3, 3, 3)), ("second", (16, 16, 1, 1))):
            self.register_buffer(name, torch.randint(-127, 128, shape, dtype=torch.int8))
        self.register_buffer("scales", torch.rand(16) * 0.02 + 1e-3)
        self.register_buffer("zeros", torch.zeros(16, dtype=torch.int64))
        self.bias = torch.nn.Parameter(torch.rand(16))

    def forward(self, x: Any) -> Any:
        def convolve(x: Any, weight: Any, **options: Any) -> Any:
            weight = Q.dequantize_per_channel(
                weight, self.scales, self.zeros, 0, -127, 127, torch.int8
            )
            return torch.nn.functional.conv2d(x, weight, self.bias, **options).relu()

        def quantize(x: Any, *numbers: Any) -> Any:
            q = Q.quantize_per_tensor(x, *numbers, torch.uint8)
            return Q.dequantize_per_tensor(q, *numbers, torch.uint8)

        y = convolve(quantize(x, 0.03, 131, 0, 255), self.first, stride=2, padding=1)
        y = quantize(y, 0.01, 0, 0, 255)
        z = convolve(y, self.second) + y
        return (Q.quantize_per_tensor(z, 0.02, -128, -128, 127, torch.int8),)


class Fake(torch.nn.Module):
    """What quantization does to floats, as training knows it: by channel with zero points of both
    types, and by tensor with a scale that is one."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randn(10, 64))
        self.register_buffer("scales", torch.rand(10) * 0.02 + 1e-2)
        self.register_buffer("zeros", torch.randint(-9, 10, (10,), dtype=torch.int32))
        self.register_buffer("scale", torch.tensor([0.03]))
        self.register_buffer("zero", torch.tensor([7], dtype=torch.int32))

    def forward(self, x: Any) -> Any:
        one = torch.fake_quantize_per_tensor_affine(x, self.scale, self.zero, 0, 255)
        by_channel = torch.fake_quantize_per_channel_affine
        rows = by_channel(self.weight, self.scales, self.zeros, 0, -128, 127)
        columns = by_channel(self.weight.T, self.scales, self.zeros.float(), 1, 0, 15)
        return one, rows, columns, one @ rows.T + x @ columns


# Of enough work for a kernel.
SHAPES = {Convolutions: (2, 3, 33, 41)}


@pytest.mark.parametrize("kind", [Static, Dynamic, Convolutions, Fake])
def test_pt2e(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    torch.manual_seed(0)
    module, inputs = kind().eval(), (torch.randn(SHAPES.get(kind, (4, 64))),)
    file = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(module, inputs), file)
    artifact = aotc.build(file, emit="shared", out=f"{tmp_path}/", chips="sm_80")
    x = torch.randn(inputs[0].shape)
    found = aotc.torch.load(tmp_path)(x)
    for one, expected in zip(found, module(x), strict=True):
        assert one.dtype == expected.dtype
        if expected.dtype.is_floating_point:
            np.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-6)
        else:
            # Sums of integers are exact, those of floats are not: a step where one is between two.
            difference = np.asarray(one, np.int32) - np.asarray(expected, np.int32)
            assert np.abs(difference).max() <= (kind is Convolutions)
            assert np.mean(difference != 0) < 1e-3
    if kind is Convolutions:
        names = " ".join(kernel.name for kernel in artifact.manifest.kernels)
        assert "implicit_gemm_i8" in names


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


def test_onnx_products(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A padded convolution and a product of matrices between QuantizeLinear and DequantizeLinear,
    and QLinearConv, against ONNX's own definition."""
    onnx = pytest.importorskip("onnx", reason="ONNX is not installed: pip install 'aotc[onnx]'")
    from onnx.reference import ReferenceEvaluator

    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    text = """<ir_version: 9, opset_import: ["": 19]>
        net (float[N, 3, 19, 31] x, int8[16, 3, 3, 3] w, int8[16, 10] u) => (uint8[N, 16, 10, 16] y,
            uint8[N, 16, 10, 16] z, int8[N, 10] v)
        <float sx = {0.03}, uint8 zx = {131}, float[16] sw = {SCALES}, int8[16] zw = {ZEROS},
         float sy = {0.02}, uint8 zy = {3}, float su = {0.01}, int8 zu = {-7}, int8 zo = {0}> {
            q = QuantizeLinear (x, sx, zx)
            d = DequantizeLinear (q, sx, zx)
            f = DequantizeLinear <axis: int = 0> (w, sw, zw)
            c = Conv <pads: ints = [1, 1, 1, 1], strides: ints = [2, 2]> (d, f)
            y = QuantizeLinear (c, sy, zy)
            z = QLinearConv <pads: ints = [1, 1, 1, 1], strides: ints = [2, 2]>
                (q, sx, zx, w, sw, zw, sy, zy)
            e = DequantizeLinear (y, sy, zy)
            pooled = GlobalAveragePool (e)
            means = Flatten (pooled)
            m = QuantizeLinear (means, su, zu)
            n = DequantizeLinear (m, su, zu)
            g = DequantizeLinear (u, su, zo)
            p = MatMul (n, g)
            v = QuantizeLinear (p, sy, zu)
        }"""
    rng = np.random.default_rng(0)
    scales = ", ".join(f"{one:.5f}" for one in rng.uniform(1e-3, 2e-2, 16))
    text = text.replace("{SCALES}", f"{{{scales}}}").replace(
        "{ZEROS}", f"{{{', '.join('0' * 16)}}}"
    )
    model = onnx.parser.parse_model(text)
    given = {
        "x": rng.standard_normal((8, 3, 19, 31)).astype(np.float32),
        "w": rng.integers(-128, 128, (16, 3, 3, 3)).astype(np.int8),
        "u": rng.integers(-128, 128, (16, 10)).astype(np.int8),
    }
    for name in ("w", "u"):  # as constants
        (value,) = (one for one in model.graph.input if one.name == name)
        model.graph.input.remove(value)
        model.graph.initializer.append(onnx.numpy_helper.from_array(given[name], name))
    expected = ReferenceEvaluator(model).run(None, {"x": given["x"]})
    onnx.save(model, tmp_path / "net.onnx")
    artifact = aotc.build(tmp_path / "net.onnx", emit="shared", out=f"{tmp_path}/", chips="sm_80")
    names = " ".join(kernel.name for kernel in artifact.manifest.kernels)
    assert "implicit_gemm_i8" in names
    found = aotc.load(artifact.path).net(given["x"])
    for one, exact in zip(found, expected, strict=True):
        difference = one.astype(np.int32) - exact.astype(np.int32)
        assert np.abs(difference).max() <= 1
        assert np.mean(difference != 0) < 1e-2
