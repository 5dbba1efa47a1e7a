"""What `make demo` runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from e2e.support import ROOT


def demo(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "samples" / "demo.py", folder / "demo"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_demo(tmp_path: Path) -> None:
    """It builds, runs and checks, from whatever folder, and says what it ran."""
    result = demo(tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "$ aotc build samples/matmul.mlir -o " in result.stdout
    assert "C matches " in result.stdout


def test_demo_ends_where_it_fails(tmp_path: Path) -> None:
    """A build that fails is the end of it, and its message is there to read."""
    result = demo(tmp_path, AOTC_PTXAS="/nonexistent/ptxas")
    assert result.returncode == 1
    assert "/nonexistent/ptxas" in result.stderr
    assert result.stderr.endswith("demo: 'aotc' failed with exit code 3\n")
    assert result.stdout.count("$ ") == 1
