"""Loops without work take no time, however long the others around them are."""

from __future__ import annotations

import time

import numpy as np
import pytest
from helpers.native import Library, build_library

# More than a second of work, if each were visited.
MANY = 10**12


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build_library(
        """
func.func @negate(%x: memref<?x?x?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %l = memref.dim %x, %c0 : memref<?x?x?xf32>
  %m = memref.dim %x, %c1 : memref<?x?x?xf32>
  %n = memref.dim %x, %c2 : memref<?x?x?xf32>
  scf.parallel (%h, %i, %j) = (%c0, %c0, %c0) to (%l, %m, %n) step (%c1, %c1, %c1) {
    %v = memref.load %x[%h, %i, %j] : memref<?x?x?xf32>
    %w = arith.negf %v : f32
    memref.store %w, %x[%h, %i, %j] : memref<?x?x?xf32>
  }
  return
}
""",
        tmp_path_factory.mktemp("empty"),
    )


@pytest.mark.parametrize(
    "shape", [(MANY, 1, 0), (MANY, 0, 1), (0, MANY, 1), (0, 1, MANY), (1, MANY, 0), (1, 0, MANY)]
)
def test_no_time(library: Library, shape: tuple[int, ...]) -> None:
    start = time.monotonic()
    library.call("negate", np.empty(shape, np.float32))
    assert time.monotonic() - start < 1


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (2, 1, 300), (100, 3, 1)])
def test_all_work(library: Library, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).random(shape, np.float32)
    before = x.copy()
    library.call("negate", x)
    np.testing.assert_array_equal(x, -before)
