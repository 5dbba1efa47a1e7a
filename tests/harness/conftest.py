"""Runs the harness's programs, each in both of its builds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from harness.support import GCC, Array, Build, Ran, Run, Save, make_build


@pytest.fixture(scope="session", params=["zig", "sanitized"])
def build(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Build:
    if request.param == "sanitized" and GCC is None:
        pytest.skip("gcc is not installed: no address sanitizer (zig cc has none)")
    return make_build(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture
def run(build: Build, tmp_path: Path) -> Run:
    """Runs a program in an empty folder: run("matmul", "--json", FAKE_DEVICE="cuda")."""

    def run_program(name: str, *words: object, **environment: str) -> Ran:
        result = subprocess.run(
            [str(build.program(name)), *map(str, words)],
            cwd=tmp_path,
            env={**build.environment, **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )
        for trouble in ("Sanitizer", "runtime error:", "fake runtime:"):
            assert trouble not in result.stderr, result.stderr
        assert result.returncode >= 0, f"killed by signal {-result.returncode}"
        return Ran(result.returncode, result.stdout, result.stderr)

    return run_program


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Saves an array in the folder that programs run in: save("a.npy", array) -> "a.npy"."""

    def save_array(name: str, array: Array, version: tuple[int, int] = (1, 0)) -> str:
        with (tmp_path / name).open("wb") as stream:
            np.lib.format.write_array(stream, array, version=version)
        return name

    return save_array
