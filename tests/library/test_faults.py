"""Generated libraries when the driver fails: a status, a message, no leak; the next call works."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.command import SAMPLES
from helpers.fake_gpu import FAKE_SOURCES, build_fake_driver, fake_fatbinary
from helpers.zig import ZIG_CACHE

from aotc.cli import run
from aotc.request import HostTarget
from aotc.toolchain import Runner, Toolchain

HERE = Path(__file__).resolve().parent
OUT_OF_MEMORY, ILLEGAL_ADDRESS, UNKNOWN = 2, 700, 999
# A call with host pointers: from cuInit to copies both ways. With the caller's own memory and
# context: what finds the context, loads the module there, and launches.
LEAST_CALLS = {"plain": 30, "async": 8}


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, over a static library with an image for the fake driver beside it."""
    folder = tmp_path_factory.mktemp("faults")
    fatbinary = fake_fatbinary(folder, "vector_add_kernel")
    command = ["build", str(SAMPLES / "vector_add.mlir"), "--emit", "static", "--chip", "sm_90"]
    assert run([*command, "--fatbinary", str(fatbinary), "-o", f"{folder}/"]) == 0
    build_fake_driver(folder)
    Runner(os.environ).run(
        [
            *Toolchain(os.environ).zig_cc.command,
            *("-target", HostTarget.native().triple, "-std=gnu11", "-g", "-fno-sanitize=all"),
            *("-Wall", "-Wextra", "-Werror", f"-I{folder}/include", f"-I{FAKE_SOURCES}"),
            *(str(HERE / "faults.c"), f"{folder}/lib/libvector_add.a"),
            *("-lpthread", "-ldl", "-lm", "-o", str(folder / "faults")),
        ],
        making="the program",
        env=ZIG_CACHE,
    )
    return folder


def environment(folder: Path) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": str(folder), "AOTC_DEVICE": "cuda"}


@pytest.mark.parametrize("result", [OUT_OF_MEMORY, ILLEGAL_ADDRESS, UNKNOWN])
@pytest.mark.parametrize("kind", LEAST_CALLS)
def test_every_call_of_the_driver_fails_once(faults: Path, kind: str, result: int) -> None:
    done = subprocess.run(
        [faults / "faults", kind, str(result)],
        env=environment(faults),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) >= LEAST_CALLS[kind]


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind")
@pytest.mark.parametrize("kind", LEAST_CALLS)
def test_failures_leak_nothing(faults: Path, kind: str) -> None:
    done = subprocess.run(
        [
            *("valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite,indirect"),
            *("--errors-for-leak-kinds=definite,indirect", "--error-exitcode=9"),
            *("--trace-children=yes", faults / "faults", kind, str(UNKNOWN)),
        ],
        env={**environment(faults), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
