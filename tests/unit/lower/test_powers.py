"""Powers with small exponents: products, and as exact as one rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.native import build_library

from aotc import ops
from aotc.input.source import parse_source
from aotc.mlir import make_context
from aotc.rewrites.powers import expand_powers


def power(exponent: int, element: str = "f32", integer: str = "i64") -> str:
    return f"""
func.func @power(%x: tensor<64x{element}>) -> tensor<64x{element}>
    attributes {{llvm.emit_c_interface}} {{
  %n = arith.constant {exponent} : {integer}
  %out = tensor.empty() : tensor<64x{element}>
  %y = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%x : tensor<64x{element}>)
      outs(%out : tensor<64x{element}>) {{
  ^bb0(%v: {element}, %old: {element}):
    %p = math.fpowi %v, %n : {element}, {integer}
    linalg.yield %p : {element}
  }} -> tensor<64x{element}>
  return %y : tensor<64x{element}>
}}"""


@pytest.mark.parametrize(
    ("exponent", "products"), [(-3, None), (0, None), (1, None), (2, 1), (3, 2), (4, 2), (5, None)]
)
def test_which_are_products(exponent: int, products: int | None) -> None:
    source = parse_source("power.mlir", power(exponent).encode(), make_context())
    expand_powers(source.module)
    names = [operation.name for operation in ops.walk(source.module.operation)]
    assert names.count("arith.mulf") == (products or 0)
    assert ("math.fpowi" in names) == (products is None)


@pytest.mark.parametrize("exponent", [2, 3, 4, 5])
@pytest.mark.parametrize(("element", "dtype"), [("f16", np.float16), ("f32", np.float32)])
def test_what_they_are(exponent: int, element: str, dtype: type, tmp_path: Path) -> None:
    """f16 is rounded once, to the nearest; f32 as often as is multiplied."""
    x = np.random.default_rng(exponent).uniform(-3, 3, 64).astype(dtype)
    y = np.empty_like(x)
    build_library(power(exponent, element, "i32"), tmp_path).call("power", x, y)
    exact = x.astype(np.float64) ** exponent
    if element == "f16":
        np.testing.assert_array_equal(y, exact.astype(dtype))
    else:
        np.testing.assert_allclose(y, exact, rtol=2.5e-7)
