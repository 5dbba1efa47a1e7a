"""Which loops over points have vectors of the last dimension on the CPU."""

from __future__ import annotations

import pytest
from helpers.passes import run_passes_on

MAXIMUM = """
func.func @f(%x: memref<{input}xf32>, %y: memref<8x9x32xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %c32 = arith.constant 32 : index
  %least = arith.constant -1.0 : f32
  scf.parallel (%i, %j, %k) = (%c0, %c0, %c0) to (%c8, %c9, %c32) step (%c1, %c1, %c1) {{
    %most = scf.for %t = %c0 to %c3 step %c1 iter_args(%old = %least) -> (f32) {{
      %at = arith.addi %i, %t : index
      %before = arith.subi %at, %c1 : index
      %is_there = arith.cmpi ult, %before, %c8 : index
      %row = arith.select %is_there, %before, %c0 : index
      %loaded = memref.load %x[{indices}] : memref<{input}xf32>
      %value = arith.select %is_there, %loaded, %least : f32
      %new = arith.maximumf %old, %value : f32
      scf.yield %new : f32
    }}
    memref.store %most, %y[%i, %j, %k] : memref<8x9x32xf32>
    scf.reduce
  }}
  return
}}
"""


@pytest.mark.parametrize(
    ("input_", "indices", "has_vectors"),
    [("8x9x32", "%row, %j, %k", True), ("8x32x9", "%row, %k, %j", False)],
)
def test_windows_of_pixels(input_: str, indices: str, has_vectors: bool) -> None:
    """A window along rows has vectors of channels that are last, and none where its loads are far
    from each other."""
    text = MAXIMUM.format(input=input_, indices=indices)
    module = str(run_passes_on(text, "aotc-map-parallel-loops").module)
    assert ("vector<16xf32>" in module) == has_vectors


SCALE = """
func.func @f(%x: memref<?x{channels}x49xf32>, %s: memref<?x{channels}xf32>, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %channels = arith.constant {channels} : index
  %c49 = arith.constant 49 : index
  scf.parallel (%i, %j, %k) = (%c0, %c0, %c0) to (%n, %channels, %c49) step (%c1, %c1, %c1) {{
    %scale = memref.load %s[%i, %j] : memref<?x{channels}xf32>
    %value = memref.load %x[%i, %j, %k] : memref<?x{channels}x49xf32>
    %scaled = arith.mulf %scale, %value : f32
    memref.store %scaled, %x[%i, %j, %k] : memref<?x{channels}x49xf32>
    scf.reduce
  }}
  return
}}
"""


@pytest.mark.parametrize(("channels", "has_vectors"), [(24, True), (4, False)])
def test_channels_of_a_batch_of_unknown_size(channels: int, has_vectors: bool) -> None:
    """One image has enough channels for all cores, or the batch may not."""
    module = str(run_passes_on(SCALE.format(channels=channels), "aotc-map-parallel-loops").module)
    assert ("vector<16xf32>" in module) == has_vectors
