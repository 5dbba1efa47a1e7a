"""What is folded leaves nothing that uses what was erased."""

from __future__ import annotations

from aotc import mlir
from aotc.lower.tensors.constants import fold_constants
from aotc.mlir import ir

_MAP = "affine_map<(i) -> (i)>"


def test_a_reshape_that_nothing_uses_goes_with_what_it_reshapes() -> None:
    text = f"""
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %w = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %twice = linalg.generic {{indexing_maps = [{_MAP}, {_MAP}], iterator_types = ["parallel"]}}
      ins(%w : tensor<2xf32>) outs(%e : tensor<2xf32>) {{
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  }} -> tensor<2xf32>
  %row = tensor.expand_shape %twice [[0, 1]] output_shape [1, 2]
      : tensor<2xf32> into tensor<1x2xf32>
  %again = tensor.collapse_shape %row [[0, 1]] : tensor<1x2xf32> into tensor<2xf32>
  return %x : tensor<4xf32>
}}
"""
    with mlir.make_context():
        module = ir.Module.parse(text)
        fold_constants(module)
        assert module.operation.verify()
        left = str(module)
    assert "linalg.generic" not in left
    assert "shape" not in left
