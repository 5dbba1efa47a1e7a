"""What is left around attention where it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpu.products.attention import Attention

import aotc


@pytest.mark.exhaustive
def test_no_scores_are_allocated_around_it(tmp_path: Path) -> None:
    """Of unknown sizes: their tensor, whose sizes alone were asked, kept entries from streams."""
    text = Attention("f32", 64).program.text
    built = aotc.build(
        text, emit="shared", out=f"{tmp_path}/", name="built", chips=("sm_80",), cpu_kernels=False
    )
    (entry,) = built.manifest.entries
    assert entry.why_not_async is None
