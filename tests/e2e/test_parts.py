"""Few long rows and columns, which are reduced in parts, on the CPU device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.native import Library, build_library

RANDOM = np.random.default_rng(3)
COUNT = 150_001
# x is changed in place; a scalar of the row is stored between the loops along it.
PROGRAM = f"""
func.func @softmax(%x: memref<2x{COUNT}xf32>, %most: memref<2xf32>)
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.constant 2 : index
  %n = arith.constant {COUNT} : index
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%m) step (%c1) {{
    %max = scf.for %j = %c0 to %n step %c1 iter_args(%old = %least) -> f32 {{
      %v = memref.load %x[%i, %j] : memref<2x{COUNT}xf32>
      %new = arith.maximumf %old, %v : f32
      scf.yield %new : f32
    }}
    memref.store %max, %most[%i] : memref<2xf32>
    scf.parallel (%j) = (%c0) to (%n) step (%c1) {{
      %v = memref.load %x[%i, %j] : memref<2x{COUNT}xf32>
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      memref.store %e, %x[%i, %j] : memref<2x{COUNT}xf32>
    }}
    %sum = scf.for %j = %c0 to %n step %c1 iter_args(%old = %zero) -> f32 {{
      %v = memref.load %x[%i, %j] : memref<2x{COUNT}xf32>
      %new = arith.addf %old, %v : f32
      scf.yield %new : f32
    }}
    scf.parallel (%j) = (%c0) to (%n) step (%c1) {{
      %v = memref.load %x[%i, %j] : memref<2x{COUNT}xf32>
      %q = arith.divf %v, %sum : f32
      memref.store %q, %x[%i, %j] : memref<2x{COUNT}xf32>
    }}
  }}
  return
}}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build_library(PROGRAM, tmp_path_factory.mktemp("parts"))


def test_a_softmax_in_place(library: Library) -> None:
    x = RANDOM.standard_normal((2, COUNT)).astype(np.float32)
    most = np.zeros(2, np.float32)
    largest = x.max(1)
    powers = np.exp(x.astype(np.float64) - largest[:, None])
    expected = powers / powers.sum(1, keepdims=True)
    library.call("softmax", x, most)
    np.testing.assert_allclose(x, expected, rtol=2e-6)
    np.testing.assert_array_equal(most, largest)


@pytest.mark.parametrize("shape", [(5000, 70), (3, 300_000)])
def test_sums_in_parts(shape: tuple[int, int], tmp_path: Path) -> None:
    m, n = shape
    columns = m > n
    count, dimension = (n, 0) if columns else (m, 1)
    types = f"memref<{m}x{n}xf32>", f"memref<{count}xf32>"
    text = f"""
func.func @sums(%x: {types[0]}, %y: {types[1]}) attributes {{llvm.emit_c_interface}} {{
  linalg.reduce {{arith.addf}} ins(%x : {types[0]}) outs(%y : {types[1]}) dimensions = [{dimension}]
  return
}}
"""
    library = build_library(text, tmp_path)
    x = RANDOM.standard_normal(shape).astype(np.float32)
    sums = RANDOM.standard_normal(count).astype(np.float32)
    expected = sums + x.sum(dimension, dtype=np.float64)
    library.call("sums", x, sums)
    np.testing.assert_allclose(sums, expected, rtol=0, atol=2e-3)


# The total is read by a kernel, and what is computed of another one is stored by its own.
TOTALS = """
func.func @centered(%x: memref<40000xf32>, %y: memref<40000xf32>, %root: memref<1xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 40000 : index
  %zero = arith.constant 0.0 : f32
  %total = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
    %v = memref.load %x[%i] : memref<40000xf32>
    %t = arith.addf %s, %v : f32
    scf.yield %t : f32
  }
  %negative = arith.negf %total : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<40000xf32>
    %t = arith.addf %v, %negative : f32
    memref.store %t, %y[%i] : memref<40000xf32>
  }
  %largest = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
    %v = memref.load %x[%i] : memref<40000xf32>
    %t = arith.maximumf %s, %v : f32
    scf.yield %t : f32
  }
  %view = memref.collapse_shape %root [] : memref<1xf32> into memref<f32>
  %found = math.sqrt %largest : f32
  memref.store %found, %view[] : memref<f32>
  return
}
"""


def test_totals_that_stay_on_the_device(tmp_path: Path) -> None:
    x = RANDOM.integers(0, 10, 40000).astype(np.float32)
    y, root = np.full_like(x, 77), np.full(1, 77, np.float32)
    build_library(TOTALS, tmp_path).call("centered", x, y, root)
    np.testing.assert_array_equal(y, x - x.sum(dtype=np.float64).astype(np.float32))
    np.testing.assert_array_equal(root, [3])
