"""Kernels on the CPU in gdb: it stops at a line of the .mlir file, and prints ids."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from e2e.support import Programs
from helpers.command import SAMPLES

GDB = shutil.which("gdb")
SOURCE = SAMPLES / "block_sums.mlir"


@pytest.mark.skipif(GDB is None, reason="gdb is not installed")
def test_gdb_stops_in_a_kernel(programs: Programs, tmp_path: Path) -> None:
    """Line and ids, of the thread that the break is for: the first sum is thread 0's."""
    program = programs.build(SOURCE, "-g", "-O0", "--chip", "sm_80")
    text = SOURCE.read_text().splitlines()
    line = 1 + next(i for i, one in enumerate(text) if "memref.store %total" in one)
    script = tmp_path / "commands"
    script.write_text(
        f"set confirm off\nset debuginfod enabled off\nbreak block_sums.mlir:{line}\nrun\n"
        "print thread_id\nprint block_id\nprint block_dim\nkill\nquit\n"
    )
    arguments = ["--x", "ones", "--quiet", "--device", "cpu"]
    done = subprocess.run(
        [str(GDB), "-q", "-nx", "-batch", "-x", str(script), "--args", str(program), *arguments],
        env={**os.environ, "AOTC_CPU_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=120,
    )
    if "ptrace" in done.stderr and "not permitted" in done.stderr:
        pytest.skip("this machine lets nobody debug")
    assert f"block_sums.mlir:{line}" in done.stdout, done.stderr
    assert "$1 = {x = 0, y = 0, z = 0}" in done.stdout
    assert "$2 = {x = 0, y = 0, z = 0}" in done.stdout
    assert "$3 = {x = 256, y = 1, z = 1}" in done.stdout
