"""Which rows get a kernel for each range of their length, and which a single one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.command import Outcome
from helpers.native import build_for_gpus

Aotc = Callable[..., Outcome]
Write = Callable[..., Path]

SUM = """\
    %sum = scf.for %j = %c0 to BOUND step %c1 iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %next = arith.addf %s, %v : f32
      scf.yield %next : f32
    }
"""
STORE_SUM = "    memref.store %sum, %r[%i] : memref<?xf32>\n"
DIVIDE = """\
    scf.parallel (%j) = (%c0) to (BOUND) step (%c1) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %w = arith.divf %v, %sum : f32
      memref.store %w, %y[%i, %j] : memref<?x?xf32>
    }
"""
SPREAD = """\
    scf.parallel (%j) = (%c0) to (BOUND) step (%c1) {
      memref.store %sum, %y[%i, %j] : memref<?x?xf32>
    }
"""
SPREAD_AND_TAKE = SPREAD + DIVIDE.replace("load %x", "load %y")
REVERSED = """\
    scf.parallel (%j) = (%c0) to (BOUND) step (%c1) {
      %k = arith.subi %n, %j : index
      %v = memref.load %x[%i, %k] : memref<?x?xf32>
      %w = arith.divf %v, %sum : f32
      memref.store %w, %y[%i, %j] : memref<?x?xf32>
    }
"""
BY_REMAINDER = """\
    scf.parallel (%j) = (%c0) to (BOUND) step (%c1) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %w = arith.divf %v, %sum : f32
      %k = arith.remui %j, %m : index
      memref.store %w, %y[%i, %k] : memref<?x?xf32>
    }
"""
SQUARE = """\
    scf.parallel (%j, %k) = (%c0, %c0) to (BOUND, BOUND) step (%c1, %c1) {
      %v = memref.load %x[%i, %k] : memref<?x?xf32>
      %w = arith.divf %v, %sum : f32
      memref.store %w, %z[%i, %j, %k] : memref<?x?x?xf32>
    }
"""
KINDS = ("a kernel with blocks", "a kernel in 3 forms, of which the host chooses one, with blocks")


def _rows(body: str, bound: str, rows: str = "%rows") -> str:
    return f"""\
func.func @f(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %z: memref<?x?x?xf32>, %r: memref<?xf32>,
             %n: index, %m: index) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  scf.parallel (%i) = (%c0) to ({rows}) step (%c1) {{
    %own = arith.addi %i, %c1 : index
{body.replace("BOUND", bound)}
  }}
  return
}}
"""


def _mapped(aotc: Aotc, path: Path, *options: str) -> tuple[int, str]:
    """How many launches there are for GPUs, and what is said of the loop."""
    launches, said = _explained(aotc, path, *options)
    (line,) = [line for line in said.splitlines() if "with blocks of" in line]
    return launches, line


def _explained(aotc: Aotc, path: Path, *options: str) -> tuple[int, str]:
    """How many launches there are for GPUs, and what is said of the loops."""
    options = ("--emit", "mlir", "--explain", "--no-cpu-kernels", *options)
    made = aotc("build", path, *options, "-o", path.with_suffix(".m")).succeeded().stdout
    return path.with_suffix(".m").read_text().count("gpu.launch_func"), made


@pytest.mark.parametrize(
    ("body", "bound", "kernels"),
    [
        (SUM + DIVIDE, "%n", 4),
        (SUM + SPREAD_AND_TAKE, "%n", 4),
        (SUM + SPREAD, "%n", 2),
        (SUM + REVERSED, "%n", 2),
        (SUM + BY_REMAINDER, "%n", 2),
        (SUM + DIVIDE, "%own", 1),
        (SUM + DIVIDE.replace("BOUND", "%m"), "%n", 2),
        (SUM + DIVIDE, "%c64", 1),
    ],
    ids=[
        "read twice",
        "read after it was written",
        "a sum, spread",
        "read at another place",
        "a division of integers",
        "as long as the row says",
        "two lengths",
        "a known length",
    ],
)
def test_forms(body: str, bound: str, kernels: int, aotc: Aotc, mlir_file: Write) -> None:
    """More than one where a length of the host's decides how often a row is read, and may; and one
    for short rows, if the length is the host's and unknown."""
    launches, line = _mapped(aotc, mlir_file(_rows(body, bound)))
    assert launches == kernels
    assert KINDS[kernels == 4] in line
    assert "for each row" in line
    assert ("1 to 32 lanes for each short row" in line) == (kernels > 1)


@pytest.mark.parametrize(
    ("behind", "least", "kernels"), [(STORE_SUM, 131072, 5), (SQUARE, 16384, 6)]
)
def test_a_single_sum(behind: str, least: int, kernels: int, aotc: Aotc, mlir_file: Write) -> None:
    """Few long rows are split, and their partial sums are adjacent; rows of those and of others
    have two kernels."""
    launches, said = _explained(aotc, mlir_file(_rows(SUM + behind, "%n")))
    assert f"as many parts as fill a GPU, if there are {least} elements" in said
    assert launches == kernels


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), ("512x1x1: a block for each row, or", "a row of 2049 to 8192 columns")),
        (("--block", "128"), ("128x1x1: a block for each row,", "a row of 513 to 2048 columns")),
        (("--block", "32x4"), ("32x4x1: a warp for each row,", "a row of 129 to 512 columns")),
        (("--block", "1"), ("1x1x1: a block for each row,", "a row of 5 to 16 columns")),
    ],
)
def test_ranges(
    options: tuple[str, ...], said: tuple[str, str], aotc: Aotc, mlir_file: Write
) -> None:
    """By how many threads each row has: 5 to 16 columns for each of them."""
    launches, line = _mapped(aotc, mlir_file(_rows(SUM + DIVIDE, "%n", rows="%c64")), *options)
    assert launches == 3 + (not options)
    assert all(part in line for part in said)
    assert "is read once, up to 16 columns in each thread's registers" in line


def test_a_buffer_of_all_forms_is_the_devices(aotc: Aotc, mlir_file: Write) -> None:
    """What only the kernels in the branches touch stays on the device, and nothing waits for it."""
    path = mlir_file("""\
func.func @f(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %n: index, %m: index)
    attributes {llvm.emit_c_interface} {
  %t = memref.alloc(%n, %m) : memref<?x?xf32>
  linalg.transpose ins(%x : memref<?x?xf32>) outs(%t : memref<?x?xf32>) permutation = [1, 0]
  linalg.softmax dimension(1) ins(%t : memref<?x?xf32>) outs(%y : memref<?x?xf32>)
  memref.dealloc %t : memref<?x?xf32>
  return
}
""")
    made = aotc("build", path, "--emit", "mlir", "-o", "-").succeeded().stdout
    # The transpose, three forms of the softmax, that of short rows, and the CPU's of both.
    assert made.count("gpu.launch_func") == 7
    assert "aotc.one_stream" in made
    assert made.count("gpu.alloc") == made.count("gpu.dealloc") == 1
    assert "memref.alloc" not in made
    assert "host_shared" not in made
    described = aotc("build", path, "--emit", "manifest", "-o", "-").succeeded().stdout
    assert '"async": "f_async"' in described


NORMALIZED = """\
func.func @f(%x: memref<?x?xf32>, %y: memref<?x?xf16>, %h: memref<?xi1>, %r: memref<?xf64>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %two = arith.constant 2.0 : f32
  %no = arith.constant false
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  scf.parallel (%i) = (%c0) to (%rows) step (%c1) {
    %sum, %has = scf.for %j = %c0 to %n step %c1 iter_args(%s = %zero, %b = %no) -> (f64, i1) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %w = arith.extf %v : f32 to f64
      %next = arith.addf %s, %w : f64
      %is = arith.cmpf ogt, %v, %two : f32
      %either = arith.ori %b, %is : i1
      scf.yield %next, %either : f64, i1
    }
    memref.store %sum, %r[%i] : memref<?xf64>
    memref.store %has, %h[%i] : memref<?xi1>
    scf.parallel (%j) = (%c0) to (%n) step (%c1) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %t = arith.truncf %sum : f64 to f32
      %w = arith.divf %v, %t : f32
      memref.store %w, %x[%i, %j] : memref<?x?xf32>
      %u = arith.truncf %w : f32 to f16
      memref.store %u, %y[%i, %j] : memref<?x?xf16>
    }
  }
  return
}
"""


def test_lanes(tmp_path: Path) -> None:
    """Short rows in place, of 1 to 32 lanes each, whose number does not fill the last block."""
    module, library = build_for_gpus(NORMALIZED, tmp_path)
    assert module.count("gpu.launch_func") == 4
    random = np.random.default_rng(3)
    sizes = ((1, 1), (300, 1), (259, 3), (70, 7), (37, 16), (9, 33), (3, 64), (1500, 90))
    for rows, length in sizes:
        x = random.uniform(0.5, 2.01, (rows, length)).astype(np.float32)
        y = np.full((rows, length), np.nan, np.float16)
        has, sums = np.zeros(rows, np.bool_), np.full(rows, np.nan)
        had = x.copy()
        library.call("f", x, y, has, sums)
        exact = had.astype(np.float64).sum(1)
        np.testing.assert_allclose(sums, exact, rtol=1e-12)
        np.testing.assert_array_equal(has, (had > 2).any(1))
        np.testing.assert_allclose(x, had / exact[:, None].astype(np.float32), rtol=1e-6)
        np.testing.assert_array_equal(y, x.astype(np.float16))


def test_rows_that_are_longer_than_what_is_reduced(tmp_path: Path) -> None:
    """The longest loop decides how many threads a row has, as that of an image that is scaled by a
    product of four numbers."""
    text = """\
func.func @f(%x: memref<?x4xf32>, %y: memref<?x?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %rows = memref.dim %x, %c0 : memref<?x4xf32>
  %n = memref.dim %y, %c1 : memref<?x?xf32>
  scf.parallel (%i) = (%c0) to (%rows) step (%c1) {
    %sum = scf.for %j = %c0 to %c4 step %c1 iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<?x4xf32>
      %next = arith.addf %s, %v : f32
      scf.yield %next : f32
    }
    scf.parallel (%j) = (%c0) to (%n) step (%c1) {
      %v = memref.load %y[%i, %j] : memref<?x?xf32>
      %w = arith.mulf %v, %sum : f32
      memref.store %w, %y[%i, %j] : memref<?x?xf32>
    }
  }
  return
}
"""
    module, library = build_for_gpus(text, tmp_path)
    host = module[: module.index("gpu.module")]
    (chosen,) = [line for line in host.splitlines() if "arith.maxui" in line and "%c4" in line]
    length = chosen.split("=")[0].strip()
    assert f"arith.cmpi ule, {length}," in host
    random = np.random.default_rng(4)
    for rows, columns in ((3, 1), (5, 5000), (1200, 9)):
        x, y = (random.random((rows, size)).astype(np.float32) for size in (4, columns))
        expected = y * x.sum(1, keepdims=True)
        library.call("f", x, y)
        np.testing.assert_allclose(y, expected, rtol=1e-5)
