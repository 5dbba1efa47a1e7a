"""What `--target` makes for machines with another C library."""

from __future__ import annotations

import platform
import subprocess

import pytest
from helpers.command import SAMPLES


@pytest.mark.exhaustive
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the executable is for x86_64")
def test_a_musl_executable_is_static_and_runs_its_kernels_on_the_cpu(aotc, tmp_path):
    """It needs no library at all, says why it has no GPU, and gives the same numbers."""
    program = tmp_path / "add"
    aotc(
        "build",
        str(SAMPLES / "vector_add.mlir"),
        "--target",
        "x86_64-linux-musl",
        "-o",
        str(program),
    )
    done = subprocess.run(
        [program, *"--dim x=3 --dim y=3 --dim z=3 --x ones --y arange --print z".split()],
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "z = [1 2 3]" in done.stdout
    assert "running on the cpu" in done.stderr


def test_a_glibc_that_is_not_there_is_refused(aotc):
    """A version out of what can be linked for is bad usage, with the limits."""
    result = aotc("build", str(SAMPLES / "vector_add.mlir"), "--target", "x86_64-linux-gnu.2.99")
    assert result.code == 2
    assert "glibc can be from 2.17 to 2.44" in result.stderr
