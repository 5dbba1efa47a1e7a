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
        ("memref<?x7x9xf32>", "%i", 9, {"memref<?x63xf32>"}),
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
        "unknown images",
        "unknown",
        "a part",
        "of a row",
    ],
)
def test_merged(type_: str, place: str, width: int, collapsed: set[str], tmp_path: Path) -> None:
    text = program(type_, place, width)
    made = build(text, emit="mlir", out=tmp_path / "x.mlir", chips="sm_90").path.read_text()
    assert set(re.findall(r"collapse_shape .* into (memref<.*>)\n", made)) == collapsed


TRANSPOSE = """
func.func @f(%x: memref<7x9x40xf32>, %y: memref<40x7x9xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %images = arith.constant 40 : index
  %height = arith.constant 7 : index
  %width = arith.constant 9 : index
  scf.parallel (%i, %j, %k) = (%c0, %c0, %c0) to (%images, %height, %width) step (%c1, %c1, %c1) {
    %v = memref.load %x[%j, %k, %i] : memref<7x9x40xf32>
    memref.store %v, %y[%i, %j, %k] : memref<40x7x9xf32>
  }
  return
}
"""


def test_tiles_are_of_merged_dimensions(tmp_path: Path) -> None:
    """63 columns of 40 are 2 x 2 tiles; 7 rows of 9 columns would be 7 x 2, mostly empty."""
    made = build(TRANSPOSE, emit="mlir", out=tmp_path / "x.mlir", chips="sm_90").path.read_text()
    assert "memref<63x40xf32>" in made
    assert "workgroup" in made
    x = np.random.default_rng(0).standard_normal((7, 9, 40)).astype(np.float32)
    y = np.zeros((40, 7, 9), np.float32)
    build_library(TRANSPOSE, tmp_path).call("f", x, y)
    np.testing.assert_array_equal(y, x.transpose(2, 0, 1))


OPEN = """
func.func @f(%x: memref<?x?x?xf32>, %y: memref<?x?x?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %images = memref.dim %x, %c0 : memref<?x?x?xf32>
  %height = memref.dim %x, %c1 : memref<?x?x?xf32>
  %width = memref.dim %x, %c2 : memref<?x?x?xf32>
  scf.parallel (%i, %j, %k) = (%c0, %c0, %c0) to (%images, %height, %width) step (%c1, %c1, %c1) {
    %v = memref.load %x[%i, %j, %k] : memref<?x?x?xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, TARGET[%i, %j, %k] : memref<?x?x?xf32>
  }
  return
}
"""


@pytest.mark.parametrize(("target", "collapsed"), [("%x", {"memref<?xf32>"}), ("%y", set())])
def test_sizes_that_are_known_to_be_equal(target: str, collapsed: set[str], tmp_path: Path) -> None:
    """The size of the other buffer may be another one."""
    text = OPEN.replace("TARGET", target)
    made = build(text, emit="mlir", out=tmp_path / "x.mlir", chips="sm_90").path.read_text()
    assert set(re.findall(r"collapse_shape .* into (memref<.*>)\n", made)) == collapsed
    x = np.random.default_rng(0).standard_normal((4, 7, 9)).astype(np.float32)
    before, y = x.copy(), np.zeros((4, 7, 11), np.float32)
    build_library(text, tmp_path).call("f", x, y)
    found, unused = (x, y) if target == "%x" else (y[..., :9], y[..., 9:])
    np.testing.assert_array_equal(found, before * 2)
    assert not unused.any()


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
