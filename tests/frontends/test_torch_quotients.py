"""Remainders and rounded quotients of floats are PyTorch's, also where quotients are large."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

import aotc.torch  # noqa: E402

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "fmod": torch.fmod,
    "fmod by a number": lambda x, y: torch.fmod(x, 0.7),
    "remainder": torch.remainder,
    "floor": lambda x, y: x // y,
    "floor by a number": lambda x, y: x // 0.7,
    "floor of a number": lambda x, y: 7.25 // y,
    "trunc of a number": lambda x, y: torch.div(7.25, y, rounding_mode="trunc"),
    "floor of a whole number": lambda x, y: 9 // (x.nan_to_num(1.0).clamp(1, 99).int() + 1),
    "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "trunc by a number": lambda x, y: torch.div(x, 0.7, rounding_mode="trunc"),
}


class Quotients(torch.nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        return tuple(function(x, y) for function in FUNCTIONS.values())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_quotients(dtype: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = (torch.randn(2000) * 10 ** (torch.rand(2000) * 4 - 2)).to(dtype)
    y = (torch.randn(2000) * 10 ** (torch.rand(2000) * 3 - 2)).to(dtype)
    infinity = float("inf")
    x[:7] = torch.tensor([infinity, 3.0, float("nan"), 0.0, -0.0, 5.0, 1.0])
    y[:7] = torch.tensor([2.0, infinity, 2.0, -3.0, 3.0, -infinity, 0.0])
    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    built = aotc.torch.build(Quotients(), (x, y), name="quotients", **files)
    for (name, function), ours in zip(FUNCTIONS.items(), built(x, y), strict=True):
        # PyTorch divides 16-bit floats with more roundings.
        is_exact = name not in ("floor", "floor of a number") or dtype == torch.float32
        wanted = function(x, y) if is_exact else function(x.double(), y.double()).to(dtype)
        torch.testing.assert_close(ours, wanted, rtol=0, atol=0, equal_nan=True, msg=name)
