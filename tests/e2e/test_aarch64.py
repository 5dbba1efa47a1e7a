"""Executables for aarch64, run by an emulator: the same results as on this machine.

Debian's qemu-user-static has the emulator, its libc6-arm64-cross the C library for programs that
are linked with glibc; static ones (musl) need none.
"""

from __future__ import annotations

import functools
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from e2e.support import ROOT, Programs, run
from gpu import programs as small
from helpers.elf import Elf

import samples
from samples import Array, mismatch, write_files

IS_NATIVE = platform.machine() == "aarch64"
GLIBC = "aarch64-linux-gnu.2.28"
MUSL = "aarch64-linux-musl"
# Where the cross libraries of Debian, and those of others, have ld-linux-aarch64.so.1.
SYSROOTS = ("/usr/aarch64-linux-gnu", "/usr/aarch64-linux-gnu/sys-root")

CASES = {
    case.name: (case, module.source_of(case.program))
    for module in (samples, small)
    for case in module.CASES.values()
    # An emulated thread takes a minute for the 2^30 products of the matmul.
    if case.runs_on_cpu and case.program != "matmul"
}


@functools.cache
def emulator(target: str) -> tuple[str, ...]:
    """The words before a program's name that run it here; skips the test where there are none."""
    if IS_NATIVE:
        return ()
    found = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if found is None:
        pytest.skip("there is no qemu-aarch64 (Debian: qemu-user-static)")
    if target == MUSL:
        return (found,)
    sysroot = next((s for s in SYSROOTS if Path(s, "lib", "ld-linux-aarch64.so.1").exists()), None)
    if sysroot is None:
        pytest.skip("there is no C library for aarch64 (Debian: libc6-arm64-cross)")
    return (found, "-L", sysroot)


@dataclass(frozen=True)
class Machine:
    """Builds for one target, and runs what it built."""

    programs: Programs
    target: str

    def build(self, source: Path, *options: str) -> Path:
        program = self.programs.build(source, "--target", self.target, "--chip", "sm_80", *options)
        assert Elf(program).machine == "aarch64"
        return program

    def run(self, program: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        first, *rest = [*emulator(self.target), str(program), *arguments]
        return run(Path(first), *rest, env=env)


@pytest.fixture(params=[GLIBC, MUSL])
def machine(request: pytest.FixtureRequest, programs: Programs) -> Machine:
    emulator(request.param)
    return Machine(programs, request.param)


@pytest.mark.parametrize("optimization", ["-O0", "-O3"])
@pytest.mark.parametrize("name", CASES)
def test_result_is_numpys(machine: Machine, tmp_path: Path, name: str, optimization: str) -> None:
    """Every sample and small program that runs on the CPU, optimized or not."""
    case, source = CASES[name]
    program = machine.build(source, optimization)
    names = list(case.make().results)
    outs = [word for name in names for word in ("--out", f"{name}={tmp_path / name}.npy")]
    result = machine.run(program, *write_files(case, tmp_path), *outs, "--device", "cpu")
    assert (result.stderr, result.returncode) == ("", 0)
    for name in names:
        assert f"{name} matches" in result.stdout
        problem = mismatch(case, name, load(tmp_path / f"{name}.npy"))
        assert problem is None, problem


def load(file: Path) -> Array:
    """What a program wrote. A .npy file has no word for bfloat16: they are two bytes there."""
    array: Array = np.load(file)
    return array.view(ml_dtypes.bfloat16) if array.dtype == "V2" else array


def test_several_threads_share_the_blocks(machine: Machine) -> None:
    """The same results with any number of workers, call after call."""
    program = machine.build(samples.source_of("stencil"), "-O3")
    seen = set()
    for threads in ("1", "2", "7"):
        env = {"AOTC_CPU_THREADS": threads, "AOTC_DEVICE": "cpu"}
        result = machine.run(program, "--rate", "0.25", "--repeat", "3", **env)
        assert result.returncode == 0, result.stderr
        (line,) = [line for line in result.stdout.splitlines() if line.startswith("new ")]
        seen.add(line)
    assert len(seen) == 1


def test_without_a_gpu_the_cpu_is_taken_and_named(machine: Machine) -> None:
    program = machine.build(samples.source_of("vector_add"), "-O3")
    dims = [f"--dim={name}=4" for name in "xyz"]
    result = machine.run(program, "--x", "arange", "--y", "1", *dims, "--print", "z")
    assert result.returncode == 0
    assert "z = [1 2 3 4]" in result.stdout
    assert result.stderr.startswith("vector_add: note: running on the cpu: no NVIDIA driver: ")


def test_a_module_with_its_own_main(machine: Machine) -> None:
    program = machine.build(ROOT / "tests" / "e2e" / "data" / "own_main.mlir")
    result = machine.run(program, "a", AOTC_DEVICE="cpu")
    assert (result.stdout, result.stderr) == ("", "")
    assert result.returncode == sum(i * i for i in range(1000)) % 97 + 1
