"""Functions on tensors that return from several blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.native import Library, build_library

# `a` is the first result of one return, and the second of another one.
PROGRAM = """
func.func @f(%x: tensor<4xf32>, %c: i1) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {llvm.emit_c_interface} {
  %empty = tensor.empty() : tensor<4xf32>
  %a = linalg.abs ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  cf.cond_br %c, ^bb1(%a: tensor<4xf32>), ^bb2
^bb1(%p: tensor<4xf32>):
  return %p, %a : tensor<4xf32>, tensor<4xf32>
^bb2:
  %b = linalg.negf ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %b, %a : tensor<4xf32>, tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder: Path = tmp_path_factory.mktemp("several_returns")
    return build_library(PROGRAM, folder)


@pytest.mark.parametrize("condition", [False, True])
def test_each_return_has_its_own_values(library: Library, *, condition: bool) -> None:
    x = np.array([1, -2, 3, -4], np.float32)
    first, second = np.zeros(4, np.float32), np.zeros(4, np.float32)
    library.call("f", x, condition, first, second)
    np.testing.assert_array_equal(first, np.abs(x) if condition else -x)
    np.testing.assert_array_equal(second, np.abs(x))
