"""Powers with constant exponents: which need no function of a library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.command import Outcome
from helpers.native import build_library

from aotc.mlir import ir
from aotc.rewrites.math import simplify_powers

KERNEL = """
func.func @power(%x: memref<{length}x{element}>) attributes {{llvm.emit_c_interface}} {{
  %e = arith.constant {exponent} : {element}
  linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      outs(%x : memref<{length}x{element}>) {{
  ^bb0(%v: {element}):
    %p = math.powf %v, %e : {element}
    linalg.yield %p : {element}
  }}
  return
}}"""


@pytest.mark.parametrize("element", ["f32", "f16", "f64"])
@pytest.mark.parametrize(
    ("exponent", "instructions"),
    [
        ("2.0", ["mul"]),
        ("3.0", ["mul"]),
        ("0.5", ["sqrt"]),
        ("-0.5", ["sqrt"]),
        ("-1.0", ["rcp"]),
        ("2.5", ["fma"]),
    ],
)
def test_which_are_short(
    element: str,
    exponent: str,
    instructions: list[str],
    aotc: Callable[..., Outcome],
    mlir_file: Callable[..., Path],
    tmp_path: Path,
) -> None:
    """That of 2.5 is the library's."""
    out = tmp_path / "out.ptx"
    length = 64 if element == "f64" else 1 << 17
    path = mlir_file(KERNEL.format(element=element, exponent=exponent, length=length))
    aotc("build", path, "--chip", "sm_90", "--emit", "ptx", "-o", out).succeeded()
    text = out.read_text()
    assert all(name in text for name in instructions)
    assert ("fma" in text) == (exponent == "2.5")


@pytest.mark.parametrize("exponent", ["2.0", "3.0", "0.5", "-0.5", "-1.0", "1.0"])
def test_results(exponent: str, tmp_path: Path) -> None:
    """Of zeros, infinities and NaN, too, they are those of `pow`."""
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, -2.0, 1e-45, -1e-45, 3e38, 1e20]
    x = np.array([*special, *np.linspace(0.1, 9, 54)], np.float32)
    with ir.Context():
        module = ir.Module.parse(KERNEL.format(element="f32", exponent=exponent, length=64))
        simplify_powers(module.operation)
        text = str(module)
    assert "powf" not in text
    with np.errstate(all="ignore"):
        expected = np.power(x, np.full(64, float(exponent))).astype(np.float32)
    build_library(text, tmp_path).call("power", x)
    np.testing.assert_allclose(x, expected, rtol=3e-7, atol=0)
    np.testing.assert_array_equal(np.signbit(x), np.signbit(expected))
