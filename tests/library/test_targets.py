"""Libraries for other machines: linked into a program there, and run, on the CPU device."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.command import REPOSITORY, SAMPLES
from helpers.zig import ZIG_CACHE

from aotc.cli import run
from aotc.images.elf import ElfFile
from aotc.images.view import View
from aotc.request import HostTarget, version_numbers
from aotc.toolchain import Runner, Toolchain

MAIN = SAMPLES / "consumers" / "main.c"
SYSROOTS = ("/usr/aarch64-linux-gnu", "/usr/aarch64-redhat-linux/sys-root")


def _runner(target: str) -> list[str]:
    """What runs a program for `target` on this machine; skips where nothing does."""
    architecture, *_ = target.split("-")
    if architecture == platform.machine():
        return []
    qemu = shutil.which(f"qemu-{architecture}-static") or shutil.which(f"qemu-{architecture}")
    if qemu is None:
        pytest.skip(f"there is no qemu-user for {architecture}")
    if "musl" in target:
        return [qemu]
    sysroot = next((place for place in SYSROOTS if Path(place, "lib").exists()), None)
    if sysroot is None:
        pytest.skip(f"there is no C library for {architecture}")
    return [qemu, "-L", sysroot]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "target",
    [
        "x86_64-linux-gnu.2.17",
        "x86_64-linux-musl",
        "aarch64-linux-gnu.2.28",
        "aarch64-linux-musl",
    ],
)
def test_a_program_with_a_static_library(target: str, tmp_path: Path) -> None:
    before = _runner(target)
    options = ("--emit", "static", "--chip", "sm_80", "--target", target, "-o", f"{tmp_path}/")
    assert run(["build", str(SAMPLES / "vector_add.mlir"), *options]) == 0
    program = tmp_path / "program"
    Runner(os.environ).run(
        [
            *Toolchain(os.environ).zig_cc.command,
            *("-target", target, "-std=c11", "-D_GNU_SOURCE", f"-I{tmp_path}/include", str(MAIN)),
            *(f"{tmp_path}/lib/libvector_add.a", "-lpthread", "-ldl", "-lm", "-o", str(program)),
        ],
        making="the program",
        env=ZIG_CACHE,
        cwd=REPOSITORY,
    )
    limit = version_numbers(HostTarget.parse(target).version or "0")
    versions = ElfFile(View(program.read_bytes(), "program")).versions_needed()
    found = re.findall(r"GLIBC_([\d.]+)", " ".join(versions))
    assert all(version_numbers(version) <= limit for version in found)
    done = subprocess.run(
        [*before, program], env={"AOTC_DEVICE": "cpu"}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout != ""
