"""Dimensions of an elementwise loop that are one in memory are one of the kernel's."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from helpers.native import build_library

from aotc import build

TEXT = """
func.func @f(%x: TYPE, %bias: memref<40xf32>, %y: TYPE) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %images = arith.constant 40 : index
  %height = arith.constant 7 : index
  %width = arith.constant WIDTH : index
  scf.parallel (%i, %j, %k) = (%c0, %c0, %c0) to (%images, %height, %width) step (%c1, %c1, %c1) {
    %v = memref.load %x[%i, %j, %k] : TYPE
    %b = memref.load %bias[PLACE] : memref<40xf32>
    %w = arith.addf %v, %b : f32
    memref.store %w, %y[%i, %j, %k] : TYPE
  }
  return
}
"""
WHOLE = "memref<40x7x9xf32>"


def program(type_: str = WHOLE, place: str = "%c0", width: int = 9) -> str:
    return TEXT.replace("TYPE", type_).replace("PLACE", place).replace("WIDTH", str(width))


@pytest.mark.parametrize(
    ("type_", "place", "width", "collapsed"),
    [
        (WHOLE, "%c0", 9, {"memref<2520xf32>"}),
        (WHOLE, "%i", 9, {"memref<40x63xf32>"}),
        (
            "memref<40x7x9xf32, strided<[100, 9, 1]>>",
            "%c0",
            9,
            {"memref<40x63xf32, strided<[100, 1]>>"},
        ),
        ("memref<40x7x9xf32, strided<[80, 10, 1]>>", "%c0", 9, set()),
        ("memref<40x7x9xf32, strided<[63, 1, 7]>>", "%c0", 9, set()),
        ("memref<?x?x?xf32>", "%c0", 9, set()),
        # Of each row, the last columns are none of the loop's.
        (WHOLE, "%i", 8, set()),
        (WHOLE, "%j", 9, set()),
    ],
    ids=[
        "all",
        "of an image",
        "padded images",
        "padded",
        "turned",
        "unknown",
        "a part",
        "of a row",
    ],
)
def test_merged(type_: str, place: str, width: int, collapsed: set[str], tmp_path: Path) -> None:
    text = program(type_, place, width)
    made = build(text, emit="mlir", out=tmp_path / "x.mlir", chips="sm_90").path.read_text()
    assert set(re.findall(r"collapse_shape .* into (memref<.*>)\n", made)) == collapsed


def test_given_blocks_are_of_all_dimensions(tmp_path: Path) -> None:
    options = {"emit": "mlir", "chips": "sm_90", "block": "8x8x4"}
    made = build(program(), out=tmp_path / "x.mlir", **options).path.read_text()
    assert "collapse_shape" not in made


@pytest.mark.parametrize("place", ["%c0", "%i"])
def test_results(place: str, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((40, 7, 9)).astype(np.float32)
    bias, y = np.arange(40, dtype=np.float32), np.zeros_like(x)
    build_library(program(place=place), tmp_path).call("f", x, bias, y)
    np.testing.assert_array_equal(y, x + (bias[:, None, None] if place == "%i" else bias[0]))
