"""Operations of vectors that few programs have: values, on the host and in kernels of the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

Aotc = Callable[..., Outcome]

VECTORS = Path(__file__).parent / "data" / "vectors.mlir"
# Of the kernel by hand, of warps, of barriers and prints in kernels, of bits in memory, of scans
# and matrices, of bits of vectors.
PRINTED = VECTORS.with_suffix(".txt")


def test_values(aotc: Aotc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    done = aotc("run", VECTORS, "--chip", "sm_90").succeeded()
    assert done.stdout == PRINTED.read_text()
