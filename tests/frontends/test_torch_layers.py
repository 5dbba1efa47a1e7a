"""Layers and functions of PyTorch, on the CPU device."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.models import expected  # noqa: E402
from frontends.support import call  # noqa: E402
from frontends.torch_builds import CHIP, Layers, build, check  # noqa: E402

import aotc  # noqa: E402
import aotc.torch  # noqa: E402


def test_reciprocals_of_zero(tmp_path: Path) -> None:
    class Reciprocal(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.reciprocal(x)

    x = torch.tensor([0.0, -0.0, 2.0, torch.inf, -torch.inf, torch.nan])
    artifact = build(Reciprocal(), (x,), "reciprocal", tmp_path)
    (got,) = call(artifact, "reciprocal", [x.numpy()], [x.numpy()])
    np.testing.assert_array_equal(got, torch.reciprocal(x).numpy())


def test_gelu(tmp_path: Path) -> None:
    """By erf and by tanh, to the last digits: torch-mlir has a wrong factor in the second."""

    class Gelus(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            gelu = torch.nn.functional.gelu
            return torch.stack([gelu(x), gelu(x, approximate="tanh")])

    inputs = (torch.linspace(-6, 6, 4001),)
    artifact = build(Gelus(), inputs, "gelus", tmp_path)
    reference = expected(Gelus(), inputs)
    (got,) = call(artifact, "gelus", [inputs[0].numpy()], [reference.float().numpy()])
    np.testing.assert_allclose(got, reference.numpy(), rtol=1e-6, atol=1e-6)


def test_divisions_by_the_root_of_2(tmp_path: Path) -> None:
    """A gelu multiplies, as PyTorch's does; who divides gets a quotient."""

    class Divided(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.erf(x / math.sqrt(2))

    inputs = (torch.linspace(-6, 6, 4001),)
    for module, count in ((torch.nn.GELU(), 0), (Divided(), 1)):
        out = tmp_path / "x.mlir"
        aotc.torch.build(module, inputs, emit="mlir", out=out, chips=["sm_80"])
        assert out.read_text().count("arith.divf") == count


def test_batch_norms_are_a_product_and_a_sum(tmp_path: Path) -> None:
    """Of two constants for each channel; also without parameters, of f16, and of a mean that is far
    from 0."""
    norm = torch.nn.BatchNorm2d(8)
    for tensor in (norm.weight.data, norm.bias.data, norm.running_mean, norm.running_var):
        tensor.uniform_(0.5, 40)
    (plain := torch.nn.BatchNorm1d(8, affine=False)).running_mean.normal_()
    cases: list[tuple[Any, tuple[int, ...], Any]] = [
        (norm, (2, 8, 5, 6), torch.float32),
        (norm, (2, 8, 5, 6), torch.float16),
        (plain, (4, 8), torch.float32),
    ]
    for number, (module, shape, dtype) in enumerate(cases):
        module, inputs = module.to(dtype).eval(), (torch.rand(shape).to(dtype) * 40,)
        artifact = build(module, inputs, f"norm{number}", tmp_path)
        check(artifact, f"norm{number}", module, inputs, dtype)
        out = tmp_path / "x.mlir"
        aotc.torch.build(module, inputs, emit="mlir", out=out, chips=["sm_80"])
        text = out.read_text()
        # A kernel may have its body several times, for vectors and for what they leave.
        assert text.count("arith.mulf") == text.count("arith.addf") > 0
        assert "arith.subf" not in text
        assert "math.rsqrt" not in text


class _Padded(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.nn.functional.pad(x, (1, 2))


def test_a_dilated_convolution_of_long_rows(tmp_path: Path) -> None:
    """As in HiFi-GAN: LLVM's backend failed for the masks at the ends of its padded rows, too."""
    torch.manual_seed(4)
    layers = Layers(
        lambda convolution, x: convolution(torch.nn.functional.leaky_relu(x, 0.1)),
        torch.nn.Conv1d(64, 64, 7, padding=15, dilation=5),
    )
    x = torch.randn(1, 64, 256)
    artifact = build(layers, (x,), "dilated", tmp_path)
    check(artifact, "dilated", layers, (x,), torch.float32)


def test_rows_of_several_vectors_are_padded(tmp_path: Path) -> None:
    """LLVM's backend failed for the masks of these on AVX2."""
    x = torch.randn(130, 32)
    artifact = build(_Padded(), (x,), "padded", tmp_path)
    check(artifact, "padded", _Padded(), (x,), torch.float32)


def _first_token(layer: Any, x: Any) -> Any:
    return layer(x[:, 0])


def _one_then_other(one: Any, other: Any, x: Any) -> Any:
    return other(one(x))


def _mask_of_a_position(q: Any, k: Any, position: Any) -> Any:
    mask = torch.arange(8)[None, :] <= position[:, None]
    return torch.nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=mask)


class _Positions(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("positions", torch.arange(16.0), persistent=False)

    def forward(self, x: Any) -> Any:
        return x + self.positions


def _image() -> tuple[Any, ...]:
    return (torch.randn(1, 32, 8, 8),)


ORDINARY: dict[str, tuple[Any, Any]] = {
    # A row of a slice has strides, which say nothing.
    "first token": (
        lambda: Layers(_first_token, torch.nn.Linear(64, 64)),
        lambda: (torch.randn(1, 3, 64),),
    ),
    # What follows the convolution reads it by a view of other dimensions.
    "pixel shuffle": (
        lambda: Layers(
            _one_then_other, torch.nn.Conv2d(32, 32, 3, padding=1), torch.nn.PixelShuffle(2)
        ),
        _image,
    ),
    "group norm": (
        lambda: Layers(
            _one_then_other, torch.nn.Conv2d(32, 32, 3, padding=1), torch.nn.GroupNorm(8, 32)
        ),
        _image,
    ),
    # A position of one element is reshaped to none.
    "mask of a position": (
        lambda: Layers(_mask_of_a_position),
        lambda: (torch.randn(1, 4, 1, 16), torch.randn(1, 4, 8, 16), torch.tensor([3])),
    ),
    "buffers that are not saved": (_Positions, lambda: (torch.randn(1, 16),)),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_layers(name: str, tmp_path: Path) -> None:
    """Layers behind each other, from a file, for Hopper's kernels and others."""
    torch.manual_seed(0)
    make, inputs = (each() for each in ORDINARY[name])
    module, path = make.eval(), tmp_path / "net.pt2"
    torch.export.save(torch.export.export(module, inputs), path)
    artifact = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips="sm_80,sm_90")
    with torch.no_grad():
        reference = module(*inputs).numpy()
    (got,) = call(artifact, "net", [x.numpy() for x in inputs], [reference])
    np.testing.assert_allclose(got, reference, rtol=1e-5, atol=1e-5)


NAN, INF = float("nan"), float("inf")


# Rows with NaN, infinities, zeros alone, and numbers whose squares are no floats.
SPECIAL = torch.tensor(
    [[0.5, NAN, 2.0, -1.0], [INF, -INF, 0.3, NAN], [0.0] * 4, [1e30, -1e30, 1e-30, 0.0]]
)


SPECIAL_OPERATIONS: dict[str, Any] = {
    "maximum": lambda x: torch.maximum(x, x.flip(0)),
    "minimum": lambda x: torch.minimum(x.flip(0), x),
    "clamp": lambda x: x.clamp(-0.5, 0.7),
    "clamp from below": lambda x: x.clamp(min=0.1),
    "relu6": torch.nn.functional.relu6,
    "relu": torch.nn.functional.relu,
    "hardtanh": torch.nn.functional.hardtanh,
    "hardsigmoid": torch.nn.functional.hardsigmoid,
    "largest": lambda x: x.amax(1),
    "its index": lambda x: x.argmax(1),
    "index of the least": lambda x: x.argmin(0),
    "largest and its index": lambda x: x.max(1)[1],
    "comparison and selection": lambda x: torch.where(x > 0.1, x, 0.1),
    # Its epsilon is the type's.
    "rms norm": lambda x: torch.nn.functional.rms_norm(x[2:3], (4,)),
    "layer norm": lambda x: torch.nn.functional.layer_norm(x[2:3], (4,)),
    "normalize": lambda x: torch.nn.functional.normalize(x[2:3]),
}


@pytest.mark.parametrize("name", SPECIAL_OPERATIONS)
def test_special_numbers(name: str, tmp_path: Path) -> None:
    """NaN, infinities and zeros give what they give in PyTorch."""
    module = Layers(SPECIAL_OPERATIONS[name])
    program = torch.export.export(module, (SPECIAL,))
    files = {"emit": "shared", "out": f"{tmp_path}/", "chips": CHIP}
    artifact = aotc.torch.build(program, (), name="net", **files)
    reference = module(SPECIAL).numpy()
    (got,) = call(artifact, "net", [SPECIAL.numpy()], [reference])
    np.testing.assert_allclose(got, reference, rtol=1e-6)


@pytest.mark.parametrize("shift", [torch.bitwise_left_shift, torch.bitwise_right_shift])
@pytest.mark.parametrize(
    "dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64], ids=str
)
def test_shifts_by_any_number(shift: Any, dtype: Any, tmp_path: Path) -> None:
    """By the type's width and more, and by negative numbers, as PyTorch has it."""
    values = (torch.arange(16) * 37 - 200).to(dtype)
    bits = torch.tensor([0, 1, 7, 8, 15, 16, 31, 32, 33, 63, 64, 100, -1, -8, -100, 5]).to(dtype)
    program = torch.export.export(Layers(shift), (values, bits))
    files = {"emit": "shared", "out": f"{tmp_path}/", "chips": CHIP}
    artifact = aotc.torch.build(program, (), name="net", **files)
    reference = shift(values, bits).numpy()
    (got,) = call(artifact, "net", [values.numpy(), bits.numpy()], [reference])
    np.testing.assert_array_equal(got, reference)


def test_operators_of_a_number_and_a_tensor(tmp_path: Path) -> None:
    values, x = torch.tensor([1, 2, 3, 0]), torch.tensor([0.5, 2.0, 0.0, 3.5])

    def of_numbers(i: Any, x: Any) -> Any:
        shifted = torch.bitwise_left_shift(5, i), torch.bitwise_right_shift(-50, i)
        bits = torch.bitwise_and(6, i), torch.bitwise_or(6, i), torch.bitwise_xor(6, i)
        return *shifted, *bits, torch.xlogy(2, x), torch.special.xlog1py(2.0, x), 7 % (i + 1)

    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": CHIP}
    artifact = aotc.torch.build(Layers(of_numbers), (values, x), name="net", **files)
    for ours, theirs in zip(artifact(values, x), of_numbers(values, x), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_of_one_length_are_a_kernel(mode: str, tmp_path: Path) -> None:
    """Where the indices are a matrix, in the modes in which nothing is left out."""
    table, indices = torch.randn(9, 5), torch.randint(0, 9, (4, 3))

    def bags(i: Any, w: Any) -> Any:
        return torch.nn.functional.embedding_bag(i, w, mode=mode)

    files = {"emit": ("shared", "mlir"), "out": f"{tmp_path}/", "chips": CHIP}
    built = aotc.torch.build(Layers(bags), (indices, table), name="net", **files)
    text = built.paths["mlir"].read_text()
    assert text.count("gpu.launch_func") == 1
    (got,) = call(built, "net", [indices.numpy(), table.numpy()], [np.zeros((4, 5), np.float32)])
    np.testing.assert_allclose(got, bags(indices, table).numpy(), rtol=1e-6)
