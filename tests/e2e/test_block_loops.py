"""Functions on tensors whose loops are cycles of blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from helpers.native import build_library

# Doubles x up to n times. The way out at large elements has another tensor than that at the end.
BREAK = """
func.func @double(%n: i32, %x: tensor<?xf32>) -> (tensor<?xf32>, i32)
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %first = arith.constant 0 : index
  %most = arith.constant 10.0 : f32
  cf.br ^head(%zero, %x : i32, tensor<?xf32>)
^head(%i: i32, %t: tensor<?xf32>):
  %is_left = arith.cmpi slt, %i, %n : i32
  cf.cond_br %is_left, ^body, ^end(%t, %i : tensor<?xf32>, i32)
^body:
  %u = arith.addf %t, %t : tensor<?xf32>
  %j = arith.addi %i, %one : i32
  %v = tensor.extract %u[%first] : tensor<?xf32>
  %is_much = arith.cmpf ogt, %v, %most : f32
  cf.cond_br %is_much, ^negated, ^head(%j, %u : i32, tensor<?xf32>)
^negated:
  %w = arith.negf %u : tensor<?xf32>
  return %w, %j : tensor<?xf32>, i32
^end(%q: tensor<?xf32>, %k: i32):
  return %q, %k : tensor<?xf32>, i32
}
"""
# Two loops, one in the other; each iteration inserts an element that a later one reads.
NESTED = """
func.func @mirror(%n: index, %x: tensor<4x4xf32>) -> tensor<4x4xf32>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  cf.br ^rows(%zero, %x : index, tensor<4x4xf32>)
^rows(%i: index, %t: tensor<4x4xf32>):
  %is_row = arith.cmpi slt, %i, %n : index
  cf.cond_br %is_row, ^columns(%zero, %t : index, tensor<4x4xf32>), ^end
^columns(%j: index, %u: tensor<4x4xf32>):
  %is_column = arith.cmpi slt, %j, %n : index
  cf.cond_br %is_column, ^element, ^next
^element:
  %v = tensor.extract %u[%j, %i] : tensor<4x4xf32>
  %w = tensor.insert %v into %u[%i, %j] : tensor<4x4xf32>
  %k = arith.addi %j, %one : index
  cf.br ^columns(%k, %w : index, tensor<4x4xf32>)
^next:
  %l = arith.addi %i, %one : index
  cf.br ^rows(%l, %u : index, tensor<4x4xf32>)
^end:
  return %t : tensor<4x4xf32>
}
"""


def test_each_way_out_of_a_loop_has_its_own_values(tmp_path: Path) -> None:
    library = build_library(BREAK, tmp_path)
    x = np.array([1.5, -2, 3], np.float32)
    for n, factor, steps in ((9, -8, 3), (2, 4, 2), (0, 1, 0)):
        doubled, count = library.call("double", n, x)
        np.testing.assert_array_equal(doubled, factor * x)
        assert count == steps


def test_loops_in_loops(tmp_path: Path) -> None:
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    result = np.empty_like(x)
    build_library(NESTED, tmp_path).call("mirror", 4, x, result)
    expected = np.triu(x.T) + np.triu(x.T, 1).T
    np.testing.assert_array_equal(result, expected)
