"""Batches of products that have one matrix in common, of sizes that are not known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.kernel_targets import kernel_targets

import aotc

CASES = {
    "left": ("?x?", "?x?x?", "(m, k)", "(b, k, n)", "mk,bkn->bmn"),
    "left, transposed": ("?x?", "?x?x?", "(k, m)", "(b, n, k)", "km,bnk->bmn"),
    "right": ("?x?x?", "?x?", "(b, k, m)", "(k, n)", "bkm,kn->bmn"),
}


def module(a: str, b: str, a_map: str, b_map: str) -> str:
    loops = "(b, m, n, k)"
    maps = ", ".join(f"affine_map<{loops} -> {one}>" for one in (a_map, b_map, "(b, m, n)"))
    types = f"memref<{a}xf16>, memref<{b}xf16>"
    return f"""
func.func @product(%a: memref<{a}xf16>, %b: memref<{b}xf16>, %c: memref<?x?x?xf16>)
    attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f16
  linalg.fill ins(%zero : f16) outs(%c : memref<?x?x?xf16>)
  linalg.generic {{indexing_maps = [{maps}],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%a, %b : {types}) outs(%c : memref<?x?x?xf16>) {{
  ^bb0(%x: f16, %y: f16, %z: f16):
    %p = arith.mulf %x, %y : f16
    %s = arith.addf %z, %p : f16
    linalg.yield %s : f16
  }}
  return
}}
"""


@pytest.mark.parametrize("name", CASES)
def test_they_have_kernels_that_round_once(name: str, tmp_path: Path) -> None:
    """Loops would round each sum to f16."""
    *texts, subscripts = CASES[name]
    built = aotc.build(module(*texts), emit="shared", out=f"{tmp_path}/", name="built",
                       chips=("sm_80",))  # fmt: skip
    assert set(kernel_targets(built)) == {
        "gpu",
        "cpu",
    }
    library = aotc.load(built.path)
    random = np.random.default_rng(5)
    for sizes in ({"b": 3, "m": 33, "n": 20, "k": 130}, {"b": 1, "m": 1, "n": 9, "k": 1},
                  {"b": 2, "m": 8, "n": 8, "k": 0}):  # fmt: skip
        first, second, result = subscripts.replace("->", ",").split(",")
        a, b = (
            random.uniform(-1, 1, [sizes[axis] for axis in axes]).astype(np.float16)
            for axes in (first, second)
        )
        c = np.full([sizes[axis] for axis in result], np.nan, np.float16)
        library.product(a, b, c)
        exact = np.einsum(subscripts, a.astype(np.float64), b.astype(np.float64))
        np.testing.assert_allclose(c, exact, rtol=2**-10.9, atol=1e-5)


def test_sums_of_squares_are_no_products(tmp_path: Path) -> None:
    """They multiply and add, as a product does, but what they read is one matrix."""
    text = """
func.func @squares(%a: memref<?x?xf32>, %c: memref<?xf32>) attributes {llvm.emit_c_interface} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<?x?xf32>) outs(%c : memref<?xf32>) {
  ^bb0(%x: f32, %sum: f32):
    %square = arith.mulf %x, %x : f32
    %more = arith.addf %sum, %square : f32
    linalg.yield %more : f32
  }
  return
}
"""
    built = aotc.build(text, emit="shared", out=f"{tmp_path}/", name="built", chips=("sm_80",))
    a = np.random.default_rng(5).uniform(-1, 1, (9, 70)).astype(np.float32)
    c = np.ones(9, np.float32)
    aotc.load(built.path).squares(a, c)
    np.testing.assert_allclose(c, 1 + (a.astype(np.float64) ** 2).sum(1), rtol=1e-6)


def test_what_is_in_another_memory_has_loops(tmp_path: Path) -> None:
    """No kernel takes such a matrix, and no view is made of it."""
    text = """
func.func @product(%a: memref<8x64x32xf32>, %c: memref<8x64x48xf32>)
    attributes {llvm.emit_c_interface} {
  %b = memref.alloc() : memref<32x48xf32, 1>
  linalg.generic {indexing_maps = [affine_map<(b, i, j, k) -> (b, i, k)>,
                                   affine_map<(b, i, j, k) -> (k, j)>,
                                   affine_map<(b, i, j, k) -> (b, i, j)>],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x64x32xf32>, memref<32x48xf32, 1>) outs(%c : memref<8x64x48xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}
"""
    out = f"{tmp_path}/"
    built = aotc.build(text, emit="mlir", out=out, name="built", chips=("sm_80",))
    assert "gpu.launch" in built.path.read_text()
