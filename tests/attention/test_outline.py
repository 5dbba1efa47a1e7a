"""What is left around attention where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from gpu.products.attention import Attention
from helpers.command import SAMPLES, Outcome

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


def test_without_kernels_for_the_cpu_its_operations_run_nowhere(
    aotc: Callable[..., Outcome],
) -> None:
    """Every GPU has a kernel of attention; what it replaces is the CPU's, which has none."""
    command = ("build", SAMPLES / "attention.mlir", "--emit", "manifest", "-o", "-", "-q")
    made = json.loads(aotc(*command, "--no-cpu-kernels").succeeded().stdout)
    runs = {kernel["name"]: bool(kernel["built_for"]) for kernel in made["kernels"]}
    assert {name for name, on_gpus in runs.items() if on_gpus} == {
        "attention_kernel",  # of no keys: zeros
        "attention_f32_d16_simt_64x64",
        "attention_f32_d16_simt_64x64_align4",
    }
    assert not any(name.startswith("batched_matmul") for name in runs)
