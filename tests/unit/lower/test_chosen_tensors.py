"""Tensors of different sizes that a branch or a loop chooses: right sizes, and right owners."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.native import Library, build_library

PROGRAM = """
func.func @branch(%longer: i1, %x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
    attributes {llvm.emit_c_interface} {
  %two = tensor.concat dim(0) %x, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %y:2 = scf.if %longer -> (tensor<?xf32>, tensor<?xf32>) {
    scf.yield %two, %x : tensor<?xf32>, tensor<?xf32>
  } else {
    scf.yield %x, %two : tensor<?xf32>, tensor<?xf32>
  }
  return %y#0, %y#1 : tensor<?xf32>, tensor<?xf32>
}
func.func @select(%longer: i1, %x: tensor<?xf32>) -> tensor<?xf32>
    attributes {llvm.emit_c_interface} {
  %two = tensor.concat dim(0) %x, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %y = arith.select %longer, %two, %x : tensor<?xf32>
  %z = arith.addf %y, %y : tensor<?xf32>
  return %z : tensor<?xf32>
}
func.func @doubled_until(%size: index, %x: tensor<?xf32>) -> tensor<?xf32>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : index
  %y = scf.while (%a = %x) : (tensor<?xf32>) -> tensor<?xf32> {
    %d = tensor.dim %a, %zero : tensor<?xf32>
    %goes_on = arith.cmpi slt, %d, %size : index
    scf.condition(%goes_on) %a : tensor<?xf32>
  } do {
  ^bb0(%a: tensor<?xf32>):
    %b = tensor.concat dim(0) %a, %a : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %b : tensor<?xf32>
  }
  return %y : tensor<?xf32>
}
func.func @repeated(%times: index, %x: tensor<?xf32>) -> tensor<?xf32>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %y = scf.for %i = %zero to %times step %one iter_args(%a = %x) -> tensor<?xf32> {
    %b = tensor.concat dim(0) %a, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %b : tensor<?xf32>
  }
  return %y : tensor<?xf32>
}
func.func @appended(%times: index, %x: tensor<5xf32>) -> tensor<?xf32>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %w = tensor.cast %x : tensor<5xf32> to tensor<?xf32>
  %y = scf.for %i = %zero to %times step %one iter_args(%a = %w) -> tensor<?xf32> {
    %b = tensor.concat dim(0) %a, %w : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %b : tensor<?xf32>
  }
  return %y : tensor<?xf32>
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build_library(PROGRAM, tmp_path_factory.mktemp("chosen"))


X = np.arange(1, 6, dtype=np.float32)
TWICE = np.concatenate([X, X])


@pytest.mark.parametrize("is_longer", [False, True])
def test_a_branch_yields_tensors_of_its_sizes(library: Library, is_longer: bool) -> None:
    first, second = library.call("branch", is_longer, X)
    np.testing.assert_array_equal(first, TWICE if is_longer else X)
    np.testing.assert_array_equal(second, X if is_longer else TWICE)


@pytest.mark.parametrize("is_longer", [False, True])
def test_a_selected_tensor_has_its_own_size(library: Library, is_longer: bool) -> None:
    y = library.call("select", is_longer, X)
    np.testing.assert_array_equal(y, 2 * (TWICE if is_longer else X))


@pytest.mark.parametrize(
    ("entry", "number", "times"),
    [
        *(("doubled_until", 0, 1), ("doubled_until", 11, 4), ("repeated", 0, 1)),
        *(("repeated", 3, 4), ("appended", 0, 1), ("appended", 3, 4)),
    ],
)
def test_a_loops_result_belongs_to_the_caller(
    library: Library, entry: str, number: int, times: int
) -> None:
    """Also where the loop frees the tensors of earlier iterations."""
    y = library.call(entry, number, X)
    np.testing.assert_array_equal(y, np.tile(X, times))
    (described,) = [one for one in library.manifest["entries"] if one["name"] == entry]
    assert [result["is_owned"] for result in described["results"]] == [True]
