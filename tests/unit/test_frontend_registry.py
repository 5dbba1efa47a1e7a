"""Which front end reads a file."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from aotc.errors import ToolError
from aotc.frontends.registry import frontend_for


@pytest.mark.parametrize(
    ("ending", "name"), [(".pt2", "torch"), (".onnx", "onnx"), (".stablehlo", "stablehlo")]
)
def test_a_front_end_of_aotc_that_is_not_installed(
    ending: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file is not taken for MLIR."""
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: ())
    with pytest.raises(ToolError, match=f"is for the front end '{name}', which is not installed"):
        frontend_for(Path(f"net{ending}"), None)
    assert frontend_for(Path("net.txt"), None) is None
