"""Masked vector writes to some dimensions of a buffer: values, on the host and in kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.native import build_library

# The dimension between the vector's two is not written along.
WRITE = """
  %v = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<3x2xf32>, vector<3x2xf32>
  %m = vector.create_mask %c1, %c2 : vector<2x3xi1>
  vector.transfer_write %v, %y[%c0, %c1, %c1], %m
      {permutation_map = affine_map<(d0, d1, d2) -> (d2, d0)>, in_bounds = [false, true]}
      : vector<3x2xf32>, memref<2x3x3xf32>
"""
MODULE = """
func.func @write(%x: memref<3x2xf32>, %y: memref<2x3x3xf32>) attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  {body}
  return
}}
"""
KERNEL = "scf.parallel (%i) = (%c0) to (%c1) step (%c1) {" + WRITE + "}"


@pytest.mark.parametrize("body", [WRITE, KERNEL], ids=["host", "kernel"])
def test_a_dimension_between_those_of_the_vector(tmp_path: Path, body: str) -> None:
    """Upstream's patterns give the mask of the added dimension another shape."""
    library = build_library(MODULE.format(body=body), tmp_path)
    x = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    y = np.zeros((2, 3, 3), np.float32)
    expected = y.copy()
    expected[0, 1, 1:3] = x[:2, 0]
    library.call("write", x, y)
    assert y.tolist() == expected.tolist()
