"""The paragraphs of samples/README.md that need a framework: they print what it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome
from helpers.tour import check, steps


@pytest.mark.parametrize("needs", ["torch", "onnx", "jax"])
def test_commands(
    needs: str, aotc: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(needs, reason=f"not installed: pip install 'aotc[{needs}]'")
    monkeypatch.chdir(tmp_path)
    (block,) = steps(needs)
    check(block, tmp_path, aotc)
