"""Copies into another layout: what a block of a GPU loads and stores side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.native import run_both

ENTRY = "attributes {llvm.emit_c_interface}"


def padded(n: int, c: int, h: int, w: int) -> str:
    """Images with a border of zeros, whose channels become the last dimension."""
    source, between = f"tensor<{n}x{c}x{h}x{w}xf32>", f"tensor<{n}x{c}x{h + 2}x{w + 2}xf32>"
    result = f"tensor<{n}x{h + 2}x{w + 2}x{c}xf32>"
    return f"""
func.func @f(%x: {source}) -> {result} {ENTRY} {{
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {{
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  }} : {source} to {between}
  %empty = tensor.empty() : {result}
  %made = linalg.transpose ins(%padded : {between}) outs(%empty : {result})
      permutation = [0, 2, 3, 1]
  return %made : {result}
}}"""


def shuffled(c: int, r: int, h: int, w: int) -> str:
    """A pixel shuffle: r x r channels become the pixels of one that is as many times as large."""
    source, result = f"tensor<{c}x{r}x{r}x{h}x{w}xf32>", f"tensor<{c}x{h}x{r}x{w}x{r}xf32>"
    return f"""
func.func @f(%x: {source}) -> {result} {ENTRY} {{
  %empty = tensor.empty() : {result}
  %made = linalg.transpose ins(%x : {source}) outs(%empty : {result})
      permutation = [0, 3, 1, 4, 2]
  return %made : {result}
}}"""


@pytest.mark.parametrize("shape", [(2, 33, 9, 40), (1, 64, 30, 30), (3, 8, 8, 70), (2, 3, 40, 40)])
def test_padded_images(shape: tuple[int, int, int, int], tmp_path: Path) -> None:
    """By tiles in shared memory, but for few channels."""
    n, c, h, w = shape
    x = np.random.default_rng(c).standard_normal(shape).astype(np.float32)
    y = np.full((n, h + 2, w + 2, c), np.nan, np.float32)
    module, found = run_both(padded(*shape), tmp_path, x, y)
    expected = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))).transpose(0, 2, 3, 1)
    for one in found:
        np.testing.assert_array_equal(one, expected)
    assert ("gpu.barrier" in module) == (c >= 8)


@pytest.mark.parametrize("shape", [(8, 2, 65, 67), (4, 3, 50, 64), (64, 4, 32, 33), (3, 2, 5, 7)])
def test_pixel_shuffles(shape: tuple[int, int, int, int], tmp_path: Path) -> None:
    """A thread has the adjacent pixels, if there are enough threads."""
    c, r, h, w = shape
    x = np.random.default_rng(c).standard_normal((c, r, r, h, w)).astype(np.float32)
    y = np.full((c, h, r, w, r), np.nan, np.float32)
    module, found = run_both(shuffled(*shape), tmp_path, x, y)
    for one in found:
        np.testing.assert_array_equal(one, x.transpose(0, 3, 1, 4, 2))
    assert module.count("memref.store") == (r if c * r * h * w >= 1 << 15 else 1)


def test_indices_of_many_steps(tmp_path: Path) -> None:
    """Each step uses the one before twice, as hashes do: a walk over all paths would not end."""
    steps = "\n".join(
        f"%d{i} = arith.shli %c{i}, %one : index\n%c{i + 1} = arith.xori %d{i}, %c{i} : index"
        for i in range(40)
    )
    text = f"""
func.func @f(%x: memref<64x64xf32>, %y: memref<64x64xf32>) {ENTRY} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 64 : index
  scf.parallel (%i, %j) = (%zero, %zero) to (%n, %n) step (%one, %one) {{
    %c0 = arith.addi %i, %one : index
    {steps}
    %last = arith.remui %c40, %n : index
    %v = memref.load %x[%j, %last] : memref<64x64xf32>
    memref.store %v, %y[%i, %j] : memref<64x64xf32>
  }}
  return
}}"""
    x = np.random.default_rng(6).standard_normal((64, 64)).astype(np.float32)
    _, found = run_both(text, tmp_path, x, np.zeros_like(x))
    c = np.arange(1, 65, dtype=np.uint64)
    for _ in range(40):
        c = (c << np.uint64(1)) ^ c
    for one in found:
        np.testing.assert_array_equal(one, x[:, c % np.uint64(64)].T)
