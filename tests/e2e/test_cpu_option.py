"""`--cpu`: host code for later processors, and what operations of x86 need."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

CPU_INFO = Path("/proc/cpuinfo")
HAS_AVX = platform.machine() == "x86_64" and " avx2 " in CPU_INFO.read_text()
DOT = """func.func @main() {
  %a = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : vector<8xf32>
  %r = x86.avx.intr.dot %a, %a : vector<8xf32>
  vector.print %r : vector<8xf32>
  return
}
"""
TARGET = ("--target", "x86_64-linux-gnu.2.28")


@pytest.mark.skipif(not HAS_AVX, reason="this machine's processor has no AVX2")
def test_operations_of_x86(aotc: Aotc, mlir_file: MlirFile) -> None:
    done = aotc("run", mlir_file(DOT), "--cpu", "x86-64-v3").succeeded()
    assert done.stdout == "( 30, 30, 30, 30, 174, 174, 174, 174 )\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "instructions (llvm.x86.avx.dp.ps.256) that not every processor of x86_64 has"),
        (("--cpu", "x87"), "--cpu x87: clang has no such processor of x86_64."),
        (("--cpu", "native"), "an artifact does not depend on the machine that builds it"),
    ],
)
def test_processors_that_are_refused(
    options: tuple[str, ...], said: str, aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    done = aotc("build", mlir_file(DOT), "--emit", "obj", *TARGET, *options, "-o", tmp_path / "x.o")
    assert done.code == 2
    assert said in done.stderr
