"""Element-wise operations on fragments, for GPUs: what upstream gets wrong is not left to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from e2e.matrix_wmma import elementwise_text
from helpers.command import Outcome

Aotc = Callable[..., Outcome]
SUBTRACTION = (
    'gpu.subgroup_mma_elementwise subf %sum, %half : (!gpu.mma_matrix<16x16xf32, "COp">, '
    '!gpu.mma_matrix<16x16xf32, "COp">)'
)
OTHER = 'gpu.subgroup_mma_elementwise {} %sum : (!gpu.mma_matrix<16x16xf32, "COp">)'


def test_differences_are_not_quotients(
    aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """8 elements for each lane: 8 divisions, of the one division that the source has."""
    text = elementwise_text("f32")
    assert text.count("divf") == 1
    assert SUBTRACTION in text
    for source in (text, text.replace(SUBTRACTION, OTHER.format("negatef"))):
        out = tmp_path / "kernel.ptx"
        file = mlir_file(source, "fragments.mlir")
        aotc("build", file, "--emit", "ptx", "--chip", "sm_90", "-o", out).succeeded()
        assert out.read_text().count("div.rn.f32") == 8


@pytest.mark.parametrize("kind", ["extf", "negates"])
def test_kinds_that_end_upstreams_process(
    aotc: Aotc, mlir_file: Callable[..., Path], kind: str
) -> None:
    """They are refused by name and place."""
    text = elementwise_text("f32").replace(SUBTRACTION, OTHER.format(kind))
    done = aotc("build", mlir_file(text, "fragments.mlir"), "--emit", "ptx", "--chip", "sm_90")
    assert done.code == 2
    assert "gpu.subgroup_mma_elementwise at " in done.stderr
    assert f"'{kind}' has no lowering for GPUs" in done.stderr
