"""Loops over buffers of several dimensions: their last dimension is contiguous, and few rows are
reduced in parts on GPUs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from helpers.command import Outcome
from helpers.native import build_library

from aotc import build

Aotc = Callable[..., Outcome]

COPY = """
func.func @f(%x: TYPE, %y: memref<40x9x7x64xf32, strided<[8064, 896, 128, 1]>>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %images = arith.constant 40 : index
  %height = arith.constant 9 : index
  %width = arith.constant 7 : index
  %channels = arith.constant 64 : index
  scf.parallel (%n, %c, %i, %j) = (%c0, %c0, %c0, %c0) to (%images, %channels, %height, %width)
      step (%c1, %c1, %c1, %c1) {
    %v = memref.load %x[INDICES] : TYPE
    %w = arith.addf %v, %v : f32
    memref.store %w, %y[%n, %i, %j, %c]
        : memref<40x9x7x64xf32, strided<[8064, 896, 128, 1]>>
  }
  return
}
"""
LAST = COPY.replace("TYPE", "memref<40x9x7x64xf32>").replace("INDICES", "%n, %i, %j, %c")
FIRST = COPY.replace("TYPE", "memref<40x64x9x7xf32>").replace("INDICES", "%n, %c, %i, %j")


def test_threads_are_along_what_is_contiguous_in_all_buffers(tmp_path: Path) -> None:
    """Also if the loop has another order; with different orders, tiles go through shared memory."""
    made = build(LAST, emit="mlir", out=tmp_path / "x.mlir", chips="sm_90").path.read_text()
    assert "aotc.neighbours" in made
    assert "workgroup" not in made
    made = build(FIRST, emit="mlir", out=tmp_path / "y.mlir", chips="sm_90").path.read_text()
    assert "workgroup" in made


def test_results(tmp_path: Path) -> None:
    for name in ("last", "first"):
        (tmp_path / name).mkdir()
    x = np.random.default_rng(0).standard_normal((40, 9, 7, 64)).astype(np.float32)
    y = np.zeros((40, 9, 7, 128), np.float32)
    build_library(LAST, tmp_path / "last").call("f", x, y[..., :64])
    np.testing.assert_array_equal(y[..., :64], 2 * x)
    y[:] = 0
    channels_first = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    build_library(FIRST, tmp_path / "first").call("f", channels_first, y[..., :64])
    np.testing.assert_array_equal(y[..., :64], 2 * x)
    assert not y[..., 64:].any()


# The norm of a group of 40 channels, with a factor for each.
NORM = """
#all = affine_map<(n, c, i) -> (n, c, i)>
#row = affine_map<(n, c, i) -> (n)>
#channel = affine_map<(n, c, i) -> (c)>
func.func @f(%x: tensor<8x40x640xf32>, %w: tensor<40xf32>) -> tensor<8x40x640xf32>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#all, #channel, #row],
      iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<8x40x640xf32>, tensor<40xf32>) outs(%zeros : tensor<8xf32>) {
  ^bb0(%a: f32, %f: f32, %old: f32):
    %scaled = arith.mulf %a, %f : f32
    %square = arith.mulf %scaled, %scaled : f32
    %new = arith.addf %old, %square : f32
    linalg.yield %new : f32
  } -> tensor<8xf32>
  %out = tensor.empty() : tensor<8x40x640xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #channel, #all],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %sum, %w : tensor<8x40x640xf32>, tensor<8xf32>, tensor<40xf32>)
      outs(%out : tensor<8x40x640xf32>) {
  ^bb0(%a: f32, %s: f32, %f: f32, %old: f32):
    %root = math.sqrt %s : f32
    %normal = arith.divf %a, %root : f32
    %scaled = arith.mulf %normal, %f : f32
    linalg.yield %scaled : f32
  } -> tensor<8x40x640xf32>
  return %y : tensor<8x40x640xf32>
}
"""


def test_few_rows_of_several_dimensions(aotc: Aotc, tmp_path: Path) -> None:
    """On a GPU, 8 blocks would leave most of it idle. The CPU device keeps the loop."""
    program = tmp_path / "norm.mlir"
    program.write_text(NORM)
    done = aotc("build", program, "--emit", "mlir", "--explain", "-o", tmp_path / "out.mlir")
    said = done.succeeded().stdout
    assert "with reductions in 3 parts, on GPUs" in said
    assert "blocks of 512x1x1: a block for each row" in said
    (tmp_path / "library").mkdir()
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((8, 40, 640), (40,)))
    y = np.full_like(x, np.nan)
    build_library(NORM, tmp_path / "library").call("f", x, w, y)
    wide = x.astype(np.float64)
    sums = np.sum((wide * w[:, None]) ** 2, axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(y, wide / np.sqrt(sums) * w[:, None], rtol=1e-5, atol=1e-6)
