"""The harness over aotc's own runtime, on the cpu."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path

import numpy as np
import pytest
from harness.support import TESTS, ZIG_CC, Build, aotc_random

from aotc.toolchain import Runner, Toolchain, harness_objects, runtime_library

TARGET = f"{platform.machine()}-linux-gnu.2.28"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """matmul, linked with what aotc links into an executable."""
    folder = tmp_path_factory.mktemp("real")
    toolchain, runner = Toolchain(os.environ), Runner(os.environ)
    harness = harness_objects(toolchain, runner, TARGET, program_main=False)
    runtime = runtime_library(toolchain, runner, TARGET, kind="static")
    build = Build("real", (*ZIG_CC, "-target", TARGET), folder)
    objects = build.compile([TESTS / "programs" / "matmul.c"])
    path = folder / "matmul"
    libraries = ("-lpthread", "-ldl", "-lm")
    command = [*build.command, *objects, *map(str, harness), str(runtime), *libraries]
    subprocess.run([*command, "-o", str(path)], check=True)
    return path


def run(program: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *words], capture_output=True, text=True, cwd=program.parent,
        env={**os.environ, **environment}, timeout=60,
    )  # fmt: skip


def test_matmul(program: Path) -> None:
    """NumPy's product, with times of a real clock."""
    ran = run(program, "--device", "cpu", "--json", "--print", "C", "--repeat", "5")
    assert (ran.returncode, ran.stderr) == (0, "")
    value = json.loads(ran.stdout)
    a, b = aotc_random("A", (4, 3), "f4"), aotc_random("B", (3, 5), "f4")
    np.testing.assert_allclose(value["results"][0]["values"], a @ b, rtol=1e-6)
    assert value["device"]["kind"] == "cpu"
    assert value["device"]["multiprocessors"] >= 1
    assert 0 <= value["times"]["device_ms"]["median"] <= value["times"]["wall_ms"]["max"]


def test_device_of_the_environment(program: Path) -> None:
    assert run(program, AOTC_DEVICE="cpu").stdout.startswith("matmul on cpu\n")
    ran = run(program, AOTC_DEVICE="gpu")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("matmul: error: ")
    assert "gpu" in ran.stderr
    # --device outranks it.
    assert run(program, "--device", "cpu", AOTC_DEVICE="gpu").returncode == 0


def test_device_that_is_not_there(program: Path) -> None:
    """No machine has that many GPUs."""
    ran = run(program, "--device", "cuda:4096")
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith("matmul: error: ")


def test_list_devices(program: Path) -> None:
    ran = run(program, "--list-devices", "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    devices = json.loads(ran.stdout)["devices"]
    assert devices[-1]["kind"] == "cpu"
    assert devices[-1]["memory_bytes"] > 0
