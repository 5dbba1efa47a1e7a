"""Tensors of no elements, and what MLIR does not lower: right, or refused with a remedy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.native import Library, build_library

import aotc

ENTRY = "attributes {llvm.emit_c_interface}"
PROGRAM = f"""
func.func @matmul(%a: tensor<4x0xf32>, %b: tensor<0x3xf32>, %c: tensor<4x3xf32>) -> tensor<4x3xf32>
    {ENTRY} {{
  %r = linalg.matmul ins(%a, %b : tensor<4x0xf32>, tensor<0x3xf32>)
      outs(%c : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}}
func.func @rows(%a: tensor<0x4xf32>, %b: tensor<2x4xf32>)
    -> (tensor<2x4xf32>, tensor<3x5xf32>, tensor<0x5xf32>, tensor<0x4xf32>) {ENTRY} {{
  %z = arith.constant 1.5 : f32
  %c = tensor.concat dim(0) %a, %b : (tensor<0x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = tensor.pad %a low[1, 1] high[2, 0] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  }} : tensor<0x4xf32> to tensor<3x5xf32>
  %n = tensor.pad %a low[0, 1] high[0, 0] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  }} : tensor<0x4xf32> to tensor<0x5xf32>
  %s = tensor.extract_slice %b[1, 0] [0, 4] [1, 1] : tensor<2x4xf32> to tensor<0x4xf32>
  %e = math.exp %s : tensor<0x4xf32>
  return %c, %p, %n, %e : tensor<2x4xf32>, tensor<3x5xf32>, tensor<0x5xf32>, tensor<0x4xf32>
}}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build_library(PROGRAM, tmp_path_factory.mktemp("none"))


def test_a_sum_of_nothing_leaves_its_start(library: Library) -> None:
    c, result = np.arange(12, dtype=np.float32).reshape(4, 3), np.full((4, 3), -1, np.float32)
    library.call("matmul", np.zeros((4, 0), np.float32), np.zeros((0, 3), np.float32), c, result)
    np.testing.assert_array_equal(result, c)


def test_pieces_without_elements(library: Library) -> None:
    b = np.arange(8, dtype=np.float32).reshape(2, 4)
    results = [np.full(shape, -1, np.float32) for shape in ((2, 4), (3, 5), (0, 5), (0, 4))]
    library.call("rows", np.zeros((0, 4), np.float32), b, *results)
    np.testing.assert_array_equal(results[0], b)
    np.testing.assert_array_equal(results[1], np.full((3, 5), 1.5))


def test_a_slice_of_a_size_that_becomes_0_is_refused_with_a_remedy(tmp_path: Path) -> None:
    """MLIR's verifier refuses it once the size is part of the type."""
    program = f"""
func.func @f(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {ENTRY} {{
  %zero = arith.constant 0 : index
  %e = tensor.empty(%zero) : tensor<?xf32>
  %s = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
  %y = tensor.insert_slice %s into %e[0] [%n] [1] : tensor<?xf32> into tensor<?xf32>
  return %y : tensor<?xf32>
}}"""
    with pytest.raises(aotc.InputError) as refused:
        aotc.build(program, emit="obj", out=str(tmp_path / "f.o"), chips=["sm_90a"])
    assert "offset 0 is out-of-bounds: 0 >= 0" in refused.value.message
    assert refused.value.hint is not None
    assert "MLIR takes no slice of a dimension of size 0" in refused.value.hint


def test_an_operation_of_tosa_that_is_not_lowered_is_refused_with_a_remedy(tmp_path: Path) -> None:
    program = f"""
func.func @f(%x: tensor<4xi32>) -> tensor<4xi32> {ENTRY} {{
  %y = tosa.ceil %x : (tensor<4xi32>) -> tensor<4xi32>
  return %y : tensor<4xi32>
}}"""
    with pytest.raises(
        aotc.InputError, match=r"failed to legalize operation 'tosa.ceil'"
    ) as refused:
        aotc.build(program, emit="obj", out=str(tmp_path / "f.o"), chips=["sm_90a"])
    assert refused.value.hint is not None
    assert "replace it by other operations of tosa or linalg" in refused.value.hint


def test_a_tensor_without_memory_is_refused_with_a_remedy(tmp_path: Path) -> None:
    program = f"""
func.func @f() -> tensor<4xf32> {ENTRY} {{
  %x = ub.poison : tensor<4xf32>
  return %x : tensor<4xf32>
}}"""
    with pytest.raises(aotc.InputError, match="op was not bufferized") as refused:
        aotc.build(program, emit="obj", out=str(tmp_path / "f.o"), chips=["sm_90a"])
    assert refused.value.hint is not None
    assert "cannot put the tensors of this operation into memory" in refused.value.hint
