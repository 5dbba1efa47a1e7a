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
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from e2e import exchange_programs, matrix_programs, own_programs
from e2e.support import ROOT, Programs, run
from gpu import programs as small
from gpu import weights_programs
from helpers.command import build_here
from helpers.elf import Elf

import samples
from samples import Array, Case, mismatch, write_files

IS_NATIVE = platform.machine() == "aarch64"
GLIBC = "aarch64-linux-gnu.2.28"
MUSL = "aarch64-linux-musl"
# Where the cross libraries of Debian, and those of others, have ld-linux-aarch64.so.1.
SYSROOTS = ("/usr/aarch64-linux-gnu", "/usr/aarch64-linux-gnu/sys-root")

# Each entry once, with the last of its cases: the others differ in sizes.
CASES = {
    f"{case.program}.{case.entry}" if case.entry else case.program: (
        case,
        module.source_of(case.program),
    )
    for module in (samples, small)
    for case in module.CASES.values()
    # Its 2^30 products are too many for an emulator.
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
    check(machine, machine.build(source, optimization), case, tmp_path)


@pytest.mark.parametrize("optimization", ["-O0", "-O3"])
@pytest.mark.parametrize("program", [exchange_programs, matrix_programs], ids=lambda m: m.PROGRAM)
def test_lanes_exchange_values(
    programs: Programs, tmp_path: Path, program: Any, optimization: str
) -> None:
    """Shuffles, reductions and tensor cores. They do not depend on the C library: one is enough."""
    emulator(MUSL)
    machine = Machine(programs, MUSL)
    source = tmp_path / f"{program.PROGRAM}.mlir"
    source.write_text(program.source())
    executable = machine.build(source, optimization)
    cases = {case.entry: case for case in program.CASES.values() if case.runs_on_cpu}
    for case in cases.values():
        check(machine, executable, case, tmp_path)


def test_weights_in_a_file(machine: Machine, tmp_path: Path) -> None:
    """They are mapped into memory there, too, from beside the program."""
    source = tmp_path / f"{weights_programs.PROGRAM}.mlir"
    source.write_text(weights_programs.TEXT)
    program = tmp_path / "weighted"
    build_here(
        *(source, "--target", machine.target, "--chip", "sm_80", "-o", program),
        *("--weights", tmp_path / "weighted.weights"),
    )
    for case in weights_programs.CASES.values():
        check(machine, program, case, tmp_path)


BF16_SUM = """
func.func @sum(%x: memref<4096xbf16>, %y: memref<4096xbf16>, %z: memref<4096xbf16>)
    attributes {llvm.emit_c_interface} {
  affine.parallel (%i) = (0) to (4096) {
    %a = affine.load %x[%i] : memref<4096xbf16>
    %b = affine.load %y[%i] : memref<4096xbf16>
    %s = arith.addf %a, %b : bf16
    affine.store %s, %z[%i] : memref<4096xbf16>
  }
  return
}
"""


def test_vectors_of_bf16_round_ties_to_even(machine: Machine, tmp_path: Path) -> None:
    """LLVM 22's own addition of eight bf16 rounds ties on aarch64 by a bit of an operand."""
    source = tmp_path / "sum.mlir"
    source.write_text(BF16_SUM)
    program = machine.build(source, "-O3")
    # One and a multiple of half a unit in its last place: every other sum is a tie.
    halves = np.arange(4096) % 256
    x = np.where(halves % 4 < 2, 1, 1 + 2.0**-7).astype(ml_dtypes.bfloat16)
    y = (halves * 2.0**-8).astype(ml_dtypes.bfloat16)
    for name, array in {"x": x, "y": y}.items():
        np.save(tmp_path / f"{name}.npy", array)
    words = [f"--{name}={tmp_path / name}.npy" for name in "xy"]
    result = machine.run(program, *words, "--out", f"z={tmp_path}/z.npy", "--device", "cpu")
    assert result.returncode == 0, result.stderr
    expected = (x.astype(np.float32) + y.astype(np.float32)).astype(ml_dtypes.bfloat16)
    assert np.array_equal(load(tmp_path / "z.npy"), expected)


def check(machine: Machine, program: Path, case: Case, folder: Path) -> None:
    """Runs a case; the harness and NumPy must both find the results right."""
    names = list(case.make().results)
    outs = [word for name in names for word in ("--out", f"{name}={folder / name}.npy")]
    result = machine.run(program, *write_files(case, folder), *outs, "--device", "cpu")
    assert (result.stderr, result.returncode) == ("", 0), case.name
    for name in names:
        assert f"{name} matches" in result.stdout
        problem = mismatch(case, name, load(folder / f"{name}.npy"))
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


@pytest.mark.parametrize("name", ["tasks", "vectors"])
def test_what_a_program_prints(machine: Machine, name: str) -> None:
    """Coroutines, threads of their own, and 16-bit values in registers."""
    program = own_programs.PROGRAMS[name]
    result = machine.run(machine.build(program.source), AOTC_DEVICE="cpu")
    assert own_programs.without_addresses(result.stdout) == program.expected.read_text()
    assert (result.stderr, result.returncode) == ("", program.code)
