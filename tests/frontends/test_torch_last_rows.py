"""Models of which one row is read compute that row alone behind the last attention
(`aotc-slice-producers`), and have the right values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.torch_builds import build, check  # noqa: E402
from torch import nn  # noqa: E402

from aotc.lower.passes import slice_producers  # noqa: E402

WIDTH = 64
# Rows of a sequence of 24.
READS: dict[str, Callable[[Any], Any]] = {
    "last": lambda x: x[:, -1],
    "class_token": lambda x: x[:, 0],
    "one_of_four": lambda x: x[:, 2::4],
    "end": lambda x: x[:, 16:],
    "mean_of_some": lambda x: x[:, 4:10].mean(1),
    "of_one_sequence": lambda x: x[-1],
}


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.norm_wide = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.joined, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        batch, length, _ = x.shape
        parts = self.joined(self.norm(x)).view(batch, length, 3, 4, WIDTH // 4)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind()
        found = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(found.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(nn.functional.gelu(self.wide(self.norm_wide(x))))


class _Model(nn.Module):
    def __init__(self, read: str) -> None:
        super().__init__()
        self.layers = nn.Sequential(_Layer(), _Layer())
        self.norm, self.words = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 40)
        self.read = READS[read]

    def forward(self, x: Any) -> Any:
        return self.words(self.norm(self.read(self.layers(x))))


@pytest.mark.parametrize(("read", "batch"), [*((read, 3) for read in READS), ("last", 1)])
def test_one_slice_of_rows_is_read(
    read: str, batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sliced = []
    replace = slice_producers._replace

    def count(operation: Any, made: Any) -> None:
        sliced.append(operation.name)
        replace(operation, made)

    monkeypatch.setattr(slice_producers, "_replace", count)
    torch.manual_seed(len(read))
    model, inputs = _Model(read).eval(), (torch.randn(batch, 24, WIDTH),)
    built = build(model, inputs, "model", tmp_path)
    assert "linalg.generic" in sliced
    check(built, "model", model, inputs, torch.float32)
