"""Libraries that call the runner utilities and the async runtime, which stay inside."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from helpers.elf import Elf, archive_members
from helpers.zig import ZIG_CACHE

from aotc.cli import run
from aotc.request import HostTarget
from aotc.toolchain import Runner, Toolchain

# One entry has the name of a utility, and is not meant by those that call the others.
SOURCE = """
func.func @printF64(%x: i64) -> i64 attributes {llvm.emit_c_interface} {
  %one = arith.constant 1 : i64
  %next = arith.addi %x, %one : i64
  return %next : i64
}

func.func @show(%x: f32) attributes {llvm.emit_c_interface} {
  vector.print %x : f32
  return
}

func.func @twice(%x: memref<?xf32>, %y: memref<?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %done = async.execute {
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %v = memref.load %x[%i] : memref<?xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %y[%i] : memref<?xf32>
    }
    async.yield
  }
  async.await %done : !async.token
  return
}
"""
SUFFIXES = {"static": "a", "shared": "so"}
MAIN = """
#include <stdio.h>
#include "ONE.h"
#include "TWO.h"

int main(void) {
  float x[3] = {1, 2, 3}, y[3] = {0}, z[3] = {0};
  int64_t next = 0;
  int32_t status = one_printF64(41, &next) | one_show(2.5f) | two_show(-0.5f) |
                   one_twice(x, 3, y, 3) | two_twice(y, 3, z, 3);
  printf("%d %d: %g %g %g\\n", (int)status, (int)next, (double)z[0], (double)z[1], (double)z[2]);
  return 0;
}
"""


@pytest.mark.parametrize("kind", ["static", "shared"])
def test_two_libraries_with_utilities_of_their_own(tmp_path: Path, kind: str) -> None:
    """One program has both: each prints, and runs its tasks."""
    (tmp_path / "lib.mlir").write_text(SOURCE)
    for prefix in ("one_", "two_"):
        command = ["build", str(tmp_path / "lib.mlir"), "--emit", kind, "--chip", "sm_80"]
        assert run([*command, "--prefix", prefix, "-o", f"{tmp_path}/"]) == 0
    (tmp_path / "main.c").write_text(MAIN.replace("ONE", "one_lib").replace("TWO", "two_lib"))
    program = tmp_path / "main"
    libraries = {
        "static": ["-l:libone_lib.a", "-l:libtwo_lib.a"],
        "shared": ["-lone_lib", "-ltwo_lib"],
    }
    Runner(os.environ).run(
        [
            *Toolchain(os.environ).zig_cc.command,
            *("-target", HostTarget.native().triple, "-std=c11", "-fno-sanitize=all"),
            *("-Wall", "-Wextra", "-Werror", f"-I{tmp_path}/include", str(tmp_path / "main.c")),
            *(f"-L{tmp_path}/lib", f"-Wl,-rpath,{tmp_path}/lib", *libraries[kind]),
            *("-lpthread", "-ldl", "-lm", "-o", str(program)),
        ],
        making="the program",
        env=ZIG_CACHE,
    )
    done = subprocess.run(
        [program], env={"AOTC_DEVICE": "cpu"}, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("2.5\n-0.5\n0 42: 4 8 12\n", "", 0)


@pytest.mark.parametrize("kind", ["static", "shared"])
def test_nobody_sees_them(tmp_path: Path, kind: str) -> None:
    """All that a library has for others begins with its prefix."""
    (tmp_path / "lib.mlir").write_text(SOURCE)
    command = ["build", str(tmp_path / "lib.mlir"), "--emit", kind, "--chip", "sm_80"]
    assert run([*command, "--prefix", "one_", "-o", f"{tmp_path}/"]) == 0
    library = tmp_path / "lib" / f"libone_lib.{SUFFIXES[kind]}"
    if kind == "shared":
        seen = Elf(library).exports
    else:
        (member,) = archive_members(library.read_bytes()).values()
        seen = {s.name for s in Elf(member).symbols if s.is_global}
    assert "one_show" in seen
    assert {n for n in seen if not n.startswith(("one_", "_mlir_ciface_one_"))} == set()


def test_a_call_with_tasks_has_no_asynchronous_form(tmp_path: Path) -> None:
    (tmp_path / "lib.mlir").write_text(SOURCE)
    header = tmp_path / "lib.h"
    assert run(["build", str(tmp_path / "lib.mlir"), "--emit", "header", "-o", str(header)]) == 0
    text = header.read_text()
    assert "twice_async(" not in text
    assert "it runs tasks on other threads, which do not know the stream" in " ".join(
        text.replace("//", "").split()
    )
