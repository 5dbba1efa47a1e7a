"""Reductions of sparse matrices: to a number, and to a sparse matrix that only becomes dense."""

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


PRODUCT = """
#CSR = #sparse_tensor.encoding<{{ map = (i, j) -> (i : dense, j : compressed) }}>
func.func @product(%x: tensor<6x5x{type}>, %y: tensor<5x7x{type}>) -> tensor<6x7x{type}>
    attributes {{llvm.emit_c_interface}} {{
  %a = sparse_tensor.convert %x : tensor<6x5x{type}> to tensor<6x5x{type}, #CSR>
  %b = sparse_tensor.convert %y : tensor<5x7x{type}> to tensor<5x7x{type}, #CSR>
  %e = tensor.empty() : tensor<6x7x{type}, #CSR>
  %p = linalg.matmul ins(%a, %b : tensor<6x5x{type}, #CSR>, tensor<5x7x{type}, #CSR>)
      outs(%e : tensor<6x7x{type}, #CSR>) -> tensor<6x7x{type}, #CSR>
  %r = sparse_tensor.convert %p : tensor<6x7x{type}, #CSR> to tensor<6x7x{type}>
  return %r : tensor<6x7x{type}>
}}
"""


@pytest.mark.parametrize(("type_", "element"), [("f64", np.float64), ("i32", np.int32)])
def test_a_product_that_becomes_dense(tmp_path: Path, type_: str, element: type) -> None:
    """The sparsifier makes the product dense, and added to memory that had any values."""
    library = build_library(PRODUCT.format(type=type_), tmp_path)
    x = (np.arange(30).reshape(6, 5) % 4).astype(element)
    y = (np.arange(35).reshape(5, 7) % 3).astype(element)
    for _ in range(3):
        out = np.full((6, 7), 9, element)
        library.call("product", x, y, out)
        assert out.tolist() == (x @ y).tolist()


def test_a_product_whose_size_is_forgotten(tmp_path: Path) -> None:
    module = PRODUCT.format(type="f64").replace("tensor<6x7xf64>", "tensor<?x7xf64>")
    x, y = np.arange(30.0).reshape(6, 5), np.arange(35.0).reshape(5, 7)
    assert build_library(module, tmp_path).call("product", x, y).tolist() == (x @ y).tolist()
