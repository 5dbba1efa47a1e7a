"""Switches of tensors: each result is its own, and arguments stay as they are."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.native import Library, build_library

PROGRAM = """
func.func @two(%x: tensor<4xf32>, %a: index, %b: index) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {llvm.emit_c_interface} {
  %e = tensor.empty() : tensor<4xf32>
  %p = scf.index_switch %a -> tensor<4xf32>
  case 0 {
    %n = linalg.negf ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  case 3 {
    scf.yield %x : tensor<4xf32>
  }
  default {
    %n = linalg.square ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  %q = scf.index_switch %b -> tensor<4xf32>
  case 0 {
    %n = linalg.abs ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  default {
    %n = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>)
        -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %p, %q : tensor<4xf32>, tensor<4xf32>
}
func.func @inserted(%x: tensor<4xf32>, %y: tensor<4xf32>, %a: index) -> tensor<4xf32>
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 42.0 : f32
  %p = scf.index_switch %a -> tensor<4xf32>
  case 0 { scf.yield %x : tensor<4xf32> }
  default { scf.yield %y : tensor<4xf32> }
  %i = tensor.insert %f into %p[%c0] : tensor<4xf32>
  return %i : tensor<4xf32>
}
func.func @read_later(%x: tensor<4xf32>, %a: index) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 42.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %z = linalg.negf ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %p = scf.index_switch %a -> tensor<4xf32>
  case 0 { scf.yield %z : tensor<4xf32> }
  default { scf.yield %x : tensor<4xf32> }
  %i = tensor.insert %f into %z[%c0] : tensor<4xf32>
  return %i, %p : tensor<4xf32>, tensor<4xf32>
}
func.func @only_one(%x: tensor<4xf32>, %a: index) -> tensor<4xf32>
    attributes {llvm.emit_c_interface} {
  %p = scf.index_switch %a -> tensor<4xf32>
  default {
    %e = tensor.empty() : tensor<4xf32>
    %n = linalg.negf ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %p : tensor<4xf32>
}
func.func @blocks(%x: tensor<4xf32>, %a: i64) -> tensor<4xf32>
    attributes {llvm.emit_c_interface} {
  cf.switch %a : i64, [
    default: ^same,
    1: ^twice,
    -7: ^squared(%x : tensor<4xf32>)
  ]
^same:
  return %x : tensor<4xf32>
^twice:
  %t = arith.addf %x, %x : tensor<4xf32>
  return %t : tensor<4xf32>
^squared(%y: tensor<4xf32>):
  %s = arith.mulf %y, %x : tensor<4xf32>
  return %s : tensor<4xf32>
}
func.func @one_end(%x: tensor<4xf32>, %a: i1) -> tensor<4xf32>
    attributes {llvm.emit_c_interface} {
  cf.switch %a : i1, [
    default: ^end(%x : tensor<4xf32>),
    true: ^negated
  ]
^negated:
  %n = arith.negf %x : tensor<4xf32>
  cf.br ^end(%n : tensor<4xf32>)
^end(%y: tensor<4xf32>):
  return %y : tensor<4xf32>
}
"""
X = np.array([1, -2, 3, -4], np.float32)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build_library(PROGRAM, tmp_path_factory.mktemp("switches"), "-O1")


def blank() -> np.ndarray:
    return np.full(4, 77, np.float32)


@pytest.mark.parametrize("b", [0, 1])
@pytest.mark.parametrize(("a", "expected"), [(0, -X), (3, X), (5, X * X), (-1, X * X)])
def test_two_switches(a: int, b: int, expected: np.ndarray, library: Library) -> None:
    p, q = blank(), blank()
    library.call("two", X.copy(), a, b, p, q)
    np.testing.assert_array_equal(p, expected)
    np.testing.assert_array_equal(q, abs(X) if b == 0 else 2 * X)


@pytest.mark.parametrize("a", [0, 1])
def test_a_result_is_not_the_argument(a: int, library: Library) -> None:
    x, y, result = X.copy(), 2 * X, blank()
    library.call("inserted", x, y, a, result)
    np.testing.assert_array_equal(result, [42, *(y if a else x)[1:]])
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, 2 * X)


@pytest.mark.parametrize("a", [0, 1])
def test_a_result_stays_what_it_was(a: int, library: Library) -> None:
    inserted, p = blank(), blank()
    library.call("read_later", X.copy(), a, inserted, p)
    np.testing.assert_array_equal(inserted, [42, *-X[1:]])
    np.testing.assert_array_equal(p, X if a else -X)


def test_without_a_case(library: Library) -> None:
    result = blank()
    library.call("only_one", X.copy(), 5, result)
    np.testing.assert_array_equal(result, -X)


@pytest.mark.parametrize(("a", "expected"), [(0, X), (1, 2 * X), (-7, X * X), (7, X)])
def test_blocks_that_return(a: int, expected: np.ndarray, library: Library) -> None:
    result = blank()
    library.call("blocks", X.copy(), a, result)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(("a", "expected"), [(0, X), (1, -X)])
def test_a_block_that_two_cases_lead_to(a: int, expected: np.ndarray, library: Library) -> None:
    result = blank()
    library.call("one_end", X.copy(), a, result)
    np.testing.assert_array_equal(result, expected)
