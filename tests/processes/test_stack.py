"""A small stack is raised, or refused: it is never the end of the process by a signal."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = """
func.func @f(%x: memref<4xf32>) attributes {llvm.emit_c_interface} {
  return
}
"""
SMALL = 256 << 10
IN_A_THREAD = """
import sys, threading, aotc

def build():
    try:
        aotc.build(sys.argv[1], emit="mlir", out=sys.argv[2], cache=False)
    except aotc.InputError as error:
        print(error)

threading.stack_size(256 << 10)
thread = threading.Thread(target=build)
thread.start()
thread.join()
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "f.mlir"
    path.write_text(MODULE)
    return path


def _build_with_limits(module: Path, soft: int, hard: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *("prlimit", f"--stack={soft}:{hard}"),
            *(sys.executable, "-m", "aotc", "build", module, "--emit", "mlir", "-o", "-"),
        ],
        capture_output=True,
        text=True,
        cwd=module.parent,
    )


def test_a_low_limit_is_raised(module: Path) -> None:
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    done = _build_with_limits(module, SMALL, hard if hard > 0 else 8 << 20)
    assert (done.returncode, done.stderr) == (0, "")
    assert "func.func @f" in done.stdout


def test_a_limit_that_cannot_be_raised_is_refused(module: Path) -> None:
    done = _build_with_limits(module, SMALL, SMALL)
    assert done.returncode == 2
    assert "KiB; a build needs 1000 KiB." in done.stderr


def test_a_thread_with_a_small_stack_is_refused(module: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_A_THREAD, module, tmp_path / "out.mlir"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert "KiB; a build needs 1000 KiB." in done.stdout
