"""cf.assert on the host: the entry ends, and the status tells; the process goes on."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from aotc.cli import run
from aotc.toolchain import Toolchain

# The assertion is two calls below the entry, in a loop: whoever goes on with what @make returns
# reads from address 0.
CALLS = """
func.func private @make(%n: index) -> memref<?xf32> {
  %c0 = arith.constant 0 : index
  %is_positive = arith.cmpi sgt, %n, %c0 : index
  cf.assert %is_positive, "n is positive"
  %m = memref.alloc(%n) : memref<?xf32>
  %two = arith.constant 2.5 : f32
  memref.store %two, %m[%c0] : memref<?xf32>
  return %m : memref<?xf32>
}
func.func private @twice(%n: index) -> memref<?xf32> {
  %m = func.call @make(%n) : (index) -> memref<?xf32>
  %c0 = arith.constant 0 : index
  %v = memref.load %m[%c0] : memref<?xf32>
  %w = arith.addf %v, %v : f32
  memref.store %w, %m[%c0] : memref<?xf32>
  return %m : memref<?xf32>
}
func.func @fill(%n: index, %y: memref<4xf32>) -> i32 attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %k = arith.subi %n, %i : index
    %m = func.call @twice(%k) : (index) -> memref<?xf32>
    %v = memref.load %m[%c0] : memref<?xf32>
    memref.store %v, %y[%i] : memref<4xf32>
    memref.dealloc %m : memref<?xf32>
  }
  %seven = arith.constant 7 : i32
  return %seven : i32
}
"""
CALLS_FAILED = "assertion failed: n is positive (program.mlir:5:3)"

# Both results come from a loop that is left in its middle, with a kernel before it.
KERNEL = """
func.func @sum(%x: memref<?xf32>, %n: index) -> (f32, memref<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %size = memref.dim %x, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%size) step (%c1) {
    %v = memref.load %x[%i] : memref<?xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %x[%i] : memref<?xf32>
  }
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> f32 {
    %is_inside = arith.cmpi slt, %i, %size : index
    cf.assert %is_inside, "\\22i\\22 is 100% inside, says 'sum'"
    %v = memref.load %x[%i] : memref<?xf32>
    %b = arith.addf %a, %v : f32
    scf.yield %b : f32
  }
  return %sum, %x : f32, memref<?xf32>
}
"""

MAIN = """
func.func @main() -> i32 {
  %zero = arith.constant 0 : i32
  %never = arith.constant false
  cf.assert %never, "there is a way"
  return %zero : i32
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


@pytest.mark.parametrize("options", [("-O0",), ("-O3",), ("-O2", "-g")])
def test_the_entry_ends_where_a_called_function_fails(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Without kernels nothing but the status pulls the runtime out of its archive."""
    program = _build(CALLS, tmp_path, *options)
    good = _run(program, "--n=4", f"--out=y={tmp_path}/y.npy", "--print=result0")
    assert good.returncode == 0, good.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.full(4, 5, np.float32))
    assert "result0 = 7" in good.stdout
    for n in (3, 0):
        failed = _run(program, f"--n={n}")
        assert (failed.returncode, failed.stderr) == (4, f"program: error: {CALLS_FAILED}\n")


def test_a_program_with_kernels_says_which_assertion_failed(tmp_path: Path) -> None:
    program = _build(KERNEL, tmp_path)
    np.save(tmp_path / "x.npy", np.arange(5, dtype=np.float32))
    arguments = (f"--x={tmp_path}/x.npy", f"--out=result0={tmp_path}/sum.npy")
    good = _run(program, *arguments, "--n=4")
    assert good.returncode == 0, good.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "sum.npy"), np.float32(2 * (0 + 1 + 2 + 3)))
    failed = _run(program, *arguments, "--n=6")
    assert failed.returncode == 4
    assert failed.stderr == (
        "program: error: assertion failed: \"i\" is 100% inside, says 'sum' (program.mlir:15:5)\n"
    )


def test_a_main_of_the_modules_own_ends(tmp_path: Path) -> None:
    done = _run(_build(MAIN, tmp_path))
    assert done.returncode == 4
    assert done.stderr == ("program: error: assertion failed: there is a way (program.mlir:5:3)\n")


def test_a_library_says_so_and_can_be_called_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller lives; results are zeros; the next call does its work."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    _build(CALLS, tmp_path, "--emit", "shared")
    library = ctypes.CDLL(str(tmp_path / "lib" / "libprogram.so"))
    library.program_last_error.restype = ctypes.c_char_p

    class Descriptor(ctypes.Structure):
        _fields_ = (
            ("allocated", ctypes.c_void_p),
            ("aligned", ctypes.c_void_p),
            ("numbers", ctypes.c_int64 * 3),
        )

    y = np.zeros(4, np.float32)
    descriptor = Descriptor(y.ctypes.data, y.ctypes.data, (0, 4, 1))

    def fill(n: int) -> int:
        return int(library._mlir_ciface_fill(ctypes.c_int64(n), ctypes.byref(descriptor)))

    for _ in range(2):
        y[:] = 0
        assert fill(2) == 0
        # Twice it held: what was done by then stays done.
        np.testing.assert_array_equal(y, np.float32([5, 5, 0, 0]))
        assert library.program_status() == 9
        assert library.program_last_error().decode() == CALLS_FAILED
        library.program_clear_error()
        assert library.program_status() == 0
        assert fill(4) == 7
        assert library.program_status() == 0
        np.testing.assert_array_equal(y, np.float32([5, 5, 5, 5]))


def test_the_first_failure_is_the_one_that_is_told(tmp_path: Path) -> None:
    program = _build(
        """
func.func @f(%a: i1, %b: i1) attributes {llvm.emit_c_interface} {
  cf.assert %a, "first"
  cf.assert %b, "second"
  return
}
""",
        tmp_path,
    )
    told = {}
    for a in (0, 1):
        for b in (0, 1):
            done = _run(program, f"--a={a}", f"--b={b}")
            told[a, b] = (done.returncode, done.stderr.rpartition("assertion failed: ")[2][:5])
    assert told == {
        (0, 0): (4, "first"),
        (0, 1): (4, "first"),
        (1, 0): (4, "secon"),
        (1, 1): (0, ""),
    }


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("f64", "arith.constant 1.0 : f64"),
        ("vector<4xf32>", "arith.constant dense<1.0> : vector<4xf32>"),
        ("complex<f32>", "complex.constant [1.0 : f32, 0.0 : f32] : complex<f32>"),
        ("memref<*xf32>", "memref.cast %m : memref<4xf32> to memref<*xf32>"),
        ("memref<f32>", "memref.alloc() : memref<f32>"),
        ("!llvm.ptr", "llvm.mlir.zero : !llvm.ptr"),
    ],
)
def test_functions_of_any_result_end(tmp_path: Path, type_: str, value: str) -> None:
    program = _build(
        f"""
func.func private @make(%a: i1, %m: memref<4xf32>) -> {type_} {{
  cf.assert %a, "made"
  %v = {value}
  return %v : {type_}
}}
func.func @f(%a: i1, %m: memref<4xf32>) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %v = func.call @make(%a, %m) : (i1, memref<4xf32>) -> {type_}
  memref.store %one, %m[%c0] : memref<4xf32>
  return
}}
""",
        tmp_path,
    )
    assert _run(program, "--a=1").returncode == 0
    failed = _run(program, "--a=0")
    assert failed.returncode == 4
    assert "assertion failed: made (program.mlir:3:3)" in failed.stderr


def test_without_a_runtime_that_keeps_failures_the_process_ends(tmp_path: Path) -> None:
    """As upstream's lowering would, but with words that are not lost in a pipe."""
    _build(CALLS, tmp_path, "--emit", "obj")
    (tmp_path / "main.c").write_text(
        """#include <stdint.h>
#include <stdio.h>
typedef struct { float *allocated, *aligned; int64_t offset, size, stride; } memref;
int32_t _mlir_ciface_fill(int64_t n, memref *y);
int main(int argc, char **argv) {
  (void)argv;
  float y[4] = {0};
  memref descriptor = {y, y, 0, 4, 1};
  int32_t result = _mlir_ciface_fill(argc > 1 ? 2 : 4, &descriptor);
  printf("%d %g\\n", result, (double)y[3]);
  return 0;
}
"""
    )
    zig_cc = Toolchain(os.environ).zig_cc
    command = [*zig_cc.command, "-fno-sanitize=all", "main.c", "program.o", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert _run(tmp_path / "main").stdout == "7 5\n"
    failed = _run(tmp_path / "main", "fail")
    assert failed.returncode == -signal.SIGABRT
    assert failed.stderr == f"{CALLS_FAILED}\n"
