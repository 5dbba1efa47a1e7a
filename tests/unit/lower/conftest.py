"""Fixtures of the tests of lowering."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests build runs on the CPU device, also where there is a GPU."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
