"""Allocations whose bytes cannot be counted, or are not there: a status, not a wrong address."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from aotc.cli import run

HOST = """
func.func @f(%n: index, %k: index) -> memref<?x2x?xf32> attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %seven = arith.constant 7.0 : f32
  %m = memref.alloc(%n, %k) : memref<?x2x?xf32>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %k step %c1 {
      memref.store %seven, %m[%i, %c0, %j] : memref<?x2x?xf32>
      memref.store %seven, %m[%i, %c1, %j] : memref<?x2x?xf32>
    }
  }
  return %m : memref<?x2x?xf32>
}
"""
# One argument for each of the allocations: of the host in a called function, on the stack, of the
# device, of host-shared memory, and in a kernel.
PLACES = """
func.func private @inner(%n: index) -> memref<?xf64> {
  %m = memref.alloc(%n) : memref<?xf64>
  return %m : memref<?xf64>
}
func.func @f(%x: memref<4xf64>, %called: index, %stack: index, %onto: index, %shared: index,
             %kernel: index) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %v = memref.load %x[%c0] : memref<4xf64>
  %a = func.call @inner(%called) : (index) -> memref<?xf64>
  memref.store %v, %a[%c0] : memref<?xf64>
  %b = memref.alloca(%stack) : memref<?xf64>
  memref.store %v, %b[%c0] : memref<?xf64>
  %c = gpu.alloc(%onto) : memref<?xf64>
  gpu.dealloc %c : memref<?xf64>
  %d = gpu.alloc host_shared (%shared) : memref<?xf64>
  memref.store %v, %d[%c0] : memref<?xf64>
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %e = memref.alloc(%kernel) : memref<?xf64>
    memref.store %v, %e[%c0] : memref<?xf64>
    %w = memref.load %e[%c0] : memref<?xf64>
    memref.store %w, %x[%i] : memref<4xf64>
    memref.dealloc %e : memref<?xf64>
  }
  %w = memref.load %a[%c0] : memref<?xf64>
  %u = memref.load %b[%c0] : memref<?xf64>
  %s = arith.addf %w, %u : f64
  memref.store %s, %x[%c1] : memref<4xf64>
  memref.dealloc %a : memref<?xf64>
  gpu.dealloc %d : memref<?xf64>
  return
}
"""

# Two buffers between two kernels, which are parts of one allocation.
ARENA = """
func.func @f(%x: memref<4xi8>, %n: index, %k: index) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc(%n) : memref<?xf64>
  %b = memref.alloc(%k) : memref<?xf64>
  %s = arith.constant 1.5 : f64
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %s, %a[%i] : memref<?xf64>
    memref.store %s, %b[%i] : memref<?xf64>
  }
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %z = arith.subi %c3, %i : index
    %v = memref.load %a[%z] : memref<?xf64>
    %u = memref.load %b[%z] : memref<?xf64>
    %w = arith.addf %u, %v : f64
    %q = arith.fptosi %w : f64 to i8
    memref.store %q, %x[%i] : memref<4xi8>
  }
  memref.dealloc %a : memref<?xf64>
  memref.dealloc %b : memref<?xf64>
  return
}
"""


def _build(text: str, folder: Path, *options: str) -> Path:
    source = folder / "program.mlir"
    source.write_text(text)
    assert run(["build", str(source), "-o", f"{folder}/", "--chip", "sm_80", *options]) == 0
    return folder / "program"


def _run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments],
        env={"AOTC_DEVICE": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_sizes_whose_bytes_wrap_are_out_of_memory(tmp_path: Path, level: str) -> None:
    """Each pair is a few bytes modulo 2^64, or negative."""
    program = _build(HOST, tmp_path, level)
    result = tmp_path / "m.npy"
    good = _run(program, "--n=3", "--k=5", f"--out=result0={result}")
    assert good.returncode == 0, good.stderr
    np.testing.assert_array_equal(np.load(result), np.full((3, 2, 5), 7, np.float32))
    assert _run(program, "--n=0", "--k=5").returncode == 0
    for n, k in ((2**61 + 1, 1), (1, 2**61 + 1), (2**32, 2**32), (-1, 1), (0, -1), (-1, -1)):
        failed = _run(program, f"--n={n}", f"--k={k}")
        assert (failed.returncode, failed.stderr) == (
            4,
            "program: error: there is no memory for a memref<?x2x?xf32> (program.mlir:6:8)\n",
        )


def test_memory_that_is_not_there_is_a_status_wherever_it_is_allocated(tmp_path: Path) -> None:
    program = _build(PLACES, tmp_path)
    np.save(tmp_path / "x.npy", np.float64([1.5, 0, 0, 0]))
    out = tmp_path / "y.npy"
    sizes = dict.fromkeys(("called", "stack", "onto", "shared", "kernel"), 8)

    def call(**changed: int) -> subprocess.CompletedProcess[str]:
        arguments = [f"--{name}={size}" for name, size in (sizes | changed).items()]
        return _run(program, f"--x={tmp_path}/x.npy", f"--out=x={out}", *arguments)

    good = call()
    assert good.returncode == 0, good.stderr
    np.testing.assert_array_equal(np.load(out), [1.5, 3, 1.5, 1.5])
    for name in sizes:
        for size in (2**61 + 1, -1, 2**52):
            if (name, size) == ("kernel", 2**52):
                continue  # it can be counted, and the memory is optimized away there
            failed = call(**{name: size})
            assert failed.returncode == 4, (name, size, failed)
            assert " memory for " in failed.stderr


def test_sizes_that_are_added_for_one_allocation_do_not_wrap(tmp_path: Path) -> None:
    program = _build(ARENA, tmp_path)
    np.save(tmp_path / "x.npy", np.zeros(4, np.int8))
    good = _run(program, f"--x={tmp_path}/x.npy", "--n=4", "--k=4", "--print=x")
    assert "x = [3 3 3 3]" in good.stdout, good.stderr
    for n, k in ((-1, 4), (4, 2**61), (2**60, 2**60)):
        failed = _run(program, f"--x={tmp_path}/x.npy", f"--n={n}", f"--k={k}")
        assert failed.returncode == 4
        assert "there is no memory for a memref<?xi8>" in failed.stderr
