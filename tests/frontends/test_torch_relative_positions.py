"""Attention with relative positions computes those that are gathered (`aotc-slice-gathered`), and
has the right values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.torch_builds import build, check  # noqa: E402
from torch import nn  # noqa: E402

from aotc.lower.passes import slice_gathered  # noqa: E402

HEADS, WIDTH, MOST = 2, 64, 256


class _Scores(nn.Module):
    """Scores of queries with the vectors of distances, as in DeBERTa; beyond `MOST / 4`, distances
    share buckets of a logarithmic size."""

    def __init__(self, *, has_buckets: bool) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.distances, self.norm = nn.Embedding(2 * MOST, WIDTH), nn.LayerNorm(WIDTH)
        self.has_buckets = has_buckets

    def forward(self, x: Any) -> Any:
        length = x.shape[1]
        at = torch.arange(length)
        of = at[:, None] - at[None, :]
        if self.has_buckets:
            near = MOST // 4
            size = torch.where((of < near) & (of > -near), near - 1, of.abs())
            far = torch.ceil(torch.log(size / near) * near) + near
            of = torch.where(size <= near, of.float(), far * of.sign()).long()
        positions = (of + MOST).clamp(0, 2 * MOST - 1)
        q = self.q(x).view(-1, length, HEADS, WIDTH // HEADS).transpose(1, 2)
        p = self.k(self.norm(self.distances.weight)).view(2 * MOST, HEADS, -1).transpose(0, 1)
        scores = q @ p.transpose(1, 2)
        return scores.gather(-1, positions.expand(*scores.shape[:3], -1))


@pytest.mark.parametrize("has_buckets", [False, True])
def test_distances_that_are_gathered_are_computed(
    *, has_buckets: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = []
    slice_ = slice_gathered._slice

    def keep(tensor: Any, part: Any, gathers: list[Any]) -> None:
        parts.append(part[-1])
        slice_(tensor, part, gathers)

    monkeypatch.setattr(slice_gathered, "_slice", keep)
    torch.manual_seed(0)
    model, inputs = _Scores(has_buckets=has_buckets).eval(), (torch.randn(2, 24, WIDTH),)
    built = build(model, inputs, "model", tmp_path)
    assert parts == [(MOST - 23, 48, 1)]
    check(built, "model", model, inputs, torch.float32)
