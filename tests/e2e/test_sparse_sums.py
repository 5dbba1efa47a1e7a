"""Sums of all elements of a sparse matrix, whose outer loop over a dense level is a reduction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.native import build_library

MODULE = """
#M = #sparse_tensor.encoding<{{ map = (i, j) -> ({levels}) }}>
#all = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> ()>
func.func @sum(%x: tensor<4x6xf32>) -> tensor<f32> attributes {{llvm.emit_c_interface}} {{
  %s = sparse_tensor.convert %x : tensor<4x6xf32> to tensor<4x6xf32, #M>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %r = linalg.generic {{indexing_maps = [#all, #one], iterator_types = ["reduction", "reduction"]}}
      ins(%s : tensor<4x6xf32, #M>) outs(%zero : tensor<f32>) {{
    ^bb0(%a: f32, %o: f32):
      %t = arith.addf %a, %o : f32
      linalg.yield %t : f32
  }} -> tensor<f32>
  return %r : tensor<f32>
}}
"""
LEVELS = {
    "csr": "i : dense, j : compressed",
    "csc": "j : dense, i : compressed",
    "dense": "i : dense, j : dense",
    "coo": "i : compressed(nonunique), j : singleton",
}


@pytest.mark.parametrize("name", LEVELS)
def test_a_sum(tmp_path: Path, name: str) -> None:
    library = build_library(MODULE.format(levels=LEVELS[name]), tmp_path)
    x = np.arange(24, dtype=np.float32).reshape(4, 6) * (np.arange(24).reshape(4, 6) % 3 == 0)
    total = np.zeros((), np.float32)
    library.call("sum", x.astype(np.float32), total)
    assert total == x.sum()
