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


def test_concatenations_without_elements(tmp_path: Path) -> None:
    """Of tensors that have none along another dimension, with a known or an unknown size."""
    program = f"""
func.func @f(%a: tensor<7x0xf32>, %b: tensor<?x0xf32>, %c: tensor<0x?xf32>)
    -> (tensor<14x0xf32>, tensor<?x0xf32>, tensor<0x?xf32>) {ENTRY} {{
  %x = tensor.concat dim(0) %a, %a : (tensor<7x0xf32>, tensor<7x0xf32>) -> tensor<14x0xf32>
  %y = tensor.concat dim(0) %a, %b : (tensor<7x0xf32>, tensor<?x0xf32>) -> tensor<?x0xf32>
  %z = tensor.concat dim(0) %c, %c : (tensor<0x?xf32>, tensor<0x?xf32>) -> tensor<0x?xf32>
  return %x, %y, %z : tensor<14x0xf32>, tensor<?x0xf32>, tensor<0x?xf32>
}}"""
    artifact = aotc.build(program, emit="shared", out=f"{tmp_path}/", chips=["sm_90a"])
    given = [np.zeros(shape, np.float32) for shape in ((7, 0), (5, 0), (0, 3))]
    found = aotc.load(artifact).f(*given)
    assert [one.shape for one in found] == [(14, 0), (12, 0), (0, 3)]


def test_a_pad_that_nothing_reads_is_no_image(tmp_path: Path) -> None:
    program = f"""
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {ENTRY} {{
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[2] high[0] {{
  ^bb0(%i: index):
    tensor.yield %zero : f32
  }} : tensor<?xf32> to tensor<?xf32>
  %y = math.absf %x : tensor<?xf32>
  return %y : tensor<?xf32>
}}"""
    library = build_library(program, tmp_path)
    assert library.call("f", np.zeros(0, np.float32)).shape == (0,)


def test_what_is_padded_is_no_image(tmp_path: Path) -> None:
    """A column that is read as a vector, and a batch. Both may have no elements."""
    program = f"""
func.func @column(%x: tensor<?x1xf32>) -> tensor<?xf32> {ENTRY} {{
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %p = tensor.pad %x low[2, 0] high[1, 0] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %one : f32
  }} : tensor<?x1xf32> to tensor<?x1xf32>
  %n = tensor.dim %p, %c0 : tensor<?x1xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(i) -> (i, 0)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%p : tensor<?x1xf32>) outs(%e : tensor<?xf32>) {{
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  }} -> tensor<?xf32>
  return %y : tensor<?xf32>
}}
func.func @batch(%x: tensor<?x8x12x12xf32>, %w: tensor<8x3x3xf32>, %o: tensor<?x8x10x10xf32>)
    -> tensor<?x8x10x10xf32> {ENTRY} {{
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1, 0, 0, 0] high[2, 0, 0, 0] {{
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  }} : tensor<?x8x12x12xf32> to tensor<?x8x12x12xf32>
  %y = linalg.depthwise_conv_2d_nchw_chw ins(%p, %w : tensor<?x8x12x12xf32>, tensor<8x3x3xf32>)
      outs(%o : tensor<?x8x10x10xf32>) -> tensor<?x8x10x10xf32>
  return %y : tensor<?x8x10x10xf32>
}}
"""
    library = build_library(program, tmp_path)
    column = library.call("column", np.zeros((0, 1), np.float32))
    np.testing.assert_array_equal(column, np.full(3, 2, np.float32))
    start = np.ones((3, 8, 10, 10), np.float32)
    nothing = np.zeros((0, 8, 12, 12), np.float32)
    found = library.call("batch", nothing, np.ones((8, 3, 3), np.float32), start)
    np.testing.assert_array_equal(found, start)


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
