"""Which products of dequantized tensors are products of integers: those with the same result."""

from __future__ import annotations

import pytest
from helpers.passes import run_passes_on

ONE = "%f = arith.sitofp %in : i8 to f32"
_PRODUCT = """
#pair = affine_map<(d0, d1) -> (d0, d1)>
func.func @f(%x: tensor<5x4xi8>, %y: tensor<4x2xi8>, %start: tensor<5x2xf32>, %given: f32)
    -> tensor<5x2xf32> {
  %table = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32>
  %hundred = arith.constant 100 : i8
  %infinity = arith.constant 0x7F800000 : f32
  %small = arith.constant 1.0e-30 : f32
  %empty = tensor.empty() : tensor<5x4xf32>
  %a = linalg.generic {indexing_maps = [#pair, #pair], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<5x4xi8>) outs(%empty : tensor<5x4xf32>) {
  ^bb0(%in: i8, %out: f32):
    LEFT
    linalg.yield %f : f32
  } -> tensor<5x4xf32>
  %other = tensor.empty() : tensor<4x2xf32>
  %b = linalg.generic {indexing_maps = [#pair, #pair], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<4x2xi8>) outs(%other : tensor<4x2xf32>) {
  ^bb0(%in: i8, %out: f32):
    RIGHT
    linalg.yield %f : f32
  } -> tensor<4x2xf32>
  %sum = linalg.matmul ins(%a, %b : tensor<5x4xf32>, tensor<4x2xf32>)
      outs(%start : tensor<5x2xf32>) -> tensor<5x2xf32>
  return %sum : tensor<5x2xf32>
}
"""


def is_of_integers(left: str, right: str) -> bool:
    text = _PRODUCT.replace("LEFT", left).replace("RIGHT", right)
    passes = "func.func(linalg-generalize-named-ops)", "aotc-fuse-quantized-matmuls"
    return "arith.muli" in str(run_passes_on(text, *passes).module)


@pytest.mark.parametrize(
    "left",
    [
        ONE,
        "%w = arith.extsi %in : i8 to i16\n %h = arith.extsi %hundred : i8 to i16\n"
        "%s = arith.subi %w, %h : i16\n %f = arith.sitofp %s : i16 to f32",
        "%w = arith.extui %in : i8 to i16\n %f = arith.uitofp %w : i16 to f32",
        "%w = arith.sitofp %in : i8 to f32\n %f = arith.mulf %w, %small : f32",
    ],
)
def test_exact_integers_are_multiplied(left: str) -> None:
    assert is_of_integers(left, ONE)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        # A difference that is too large for its type wraps around.
        ("%s = arith.subi %in, %hundred : i8\n %f = arith.sitofp %s : i8 to f32", ONE),
        # A negative one is a large number without a sign.
        ("%w = arith.extsi %in : i8 to i16\n %f = arith.uitofp %w : i16 to f32", ONE),
        ("%w = arith.sitofp %in : i8 to f32\n %f = arith.subf %w, %infinity : f32", ONE),
        # What the body reads from outside.
        ("%w = arith.sitofp %in : i8 to f32\n %f = arith.mulf %w, %given : f32", ONE),
        ("%w = arith.sitofp %in : i8 to f32\n %f = arith.mulf %given, %w : f32", ONE),
        (
            "%i = linalg.index 0 : index\n %t = tensor.extract %table[%i] : tensor<5xf32>\n"
            "%w = arith.sitofp %in : i8 to f32\n %f = arith.mulf %w, %t : f32",
            ONE,
        ),
        # The product of the scales is 0 in f32.
        (scaled := "%w = arith.sitofp %in : i8 to f32\n %f = arith.mulf %w, %small : f32", scaled),
    ],
)
def test_other_products_stay(left: str, right: str) -> None:
    assert not is_of_integers(left, right)
