"""`aotc-fuse-horizontal-matmuls` makes layers of the same rows one matmul, with right values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.torch_builds import build, check  # noqa: E402
from torch import nn  # noqa: E402

from aotc.lower.tensors import horizontal_matmuls  # noqa: E402


class _Attention(nn.Module):
    def __init__(self, heads: int, key_heads: int, biases: str = "qkv") -> None:
        super().__init__()
        width = 32 * heads
        self.q = nn.Linear(width, width, bias="q" in biases)
        self.k = nn.Linear(width, 32 * key_heads, bias="k" in biases)
        self.v = nn.Linear(width, 32 * key_heads, bias="v" in biases)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        layers = self.q, self.k, self.v
        q, k, v = (one(x).view(batch, length, -1, 32).transpose(1, 2) for one in layers)
        found = nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return found.transpose(1, 2).reshape(batch, length, width)


class _Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(128, 256, bias=False) for _ in range(2))

    def forward(self, x: Any) -> Any:
        return nn.functional.silu(self.gate(x)) * self.up(x)


class _Quantized(nn.Module):
    """Sums of layers with weights of 8 bits, and a scale for each row."""

    def __init__(self) -> None:
        super().__init__()
        for name in "ab":
            self.register_buffer(name, torch.randint(-128, 128, (512, 256), dtype=torch.int8))
            self.register_buffer(f"{name}_scale", torch.rand(512, 1) / 128)

    def forward(self, x: Any) -> Any:
        a = nn.functional.linear(x, self.a.to(x.dtype) * self.a_scale.to(x.dtype))
        b = nn.functional.linear(x, self.b.to(x.dtype) * self.b_scale.to(x.dtype))
        return a.softmax(-1) + b.cumsum(-1)


class _Others(nn.Module):
    """One is returned, weights are used twice, and rows are others."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(128, 256, bias=False) for _ in range(3))

    def forward(self, x: Any) -> Any:
        rows = self.b(x).softmax(-1) + self.c(x + 1).softmax(-1)
        return self.a(x) + self.b(x + 1).softmax(-1) * rows


def _fused(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a build fuses, from now on."""
    found: list[str] = []
    fuse = horizontal_matmuls.fuse_horizontal_matmuls

    def noting(*arguments: Any) -> Any:
        said = fuse(*arguments)
        found.extend(text for _, text in said)
        return said

    monkeypatch.setattr(horizontal_matmuls, "fuse_horizontal_matmuls", noting)
    return found


@pytest.mark.parametrize(
    ("module", "shape", "columns"),
    [
        (_Attention(4, 4), (2, 64, 128), "128 + 128 + 128"),
        (_Attention(4, 2, ""), (2, 64, 128), "128 + 64 + 64"),
        (_Attention(4, 4, "qv"), (2, 256, 128), "128 + 128"),
        (_Gated(), (16, 1024, 128), None),
        (_Quantized(), (64, 256), "512 + 512"),
        (_Others(), (64, 128), None),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_layers_of_the_same_rows(
    module: Any,
    shape: tuple[int, ...],
    columns: str | None,
    dtype: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = _fused(monkeypatch)
    torch.manual_seed(0)
    inputs = (torch.randn(shape, dtype=dtype),)
    module = module.eval().to(dtype)
    artifact = build(module, inputs, "layers", tmp_path, cache=False)
    assert (columns is None) == (not found)
    assert columns is None or columns in found[0]
    check(artifact, "layers", module, inputs, dtype)


def test_any_number_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _fused(monkeypatch)
    module = _Attention(4, 2).eval().half()
    sizes = ({0: torch.export.Dim("batch", max=64)},)
    inputs = (torch.randn(2, 70, 128, dtype=torch.float16),)
    artifact = build(module, inputs, "layers", tmp_path, dynamic_shapes=sizes, cache=False)
    assert len(found) == 1
    for batch in (2, 1, 5):
        given = (torch.randn(batch, 70, 128, dtype=torch.float16),)
        check(artifact, "layers", module, given, torch.float16)


def test_a_weight_that_can_be_replaced_stays_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _fused(monkeypatch)
    module, x = _Attention(4, 4, "").eval(), torch.randn(2, 64, 128)
    options = {"weights": tmp_path / "model.weights", "replaceable": ["k.weight"]}
    artifact = build(module, (x,), "layers", tmp_path, cache=False, **options)
    assert [text.rpartition(": ")[2] for text in found] == ["128 + 128 columns"]
    check(artifact, "layers", module, (x,), torch.float32)
