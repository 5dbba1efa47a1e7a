"""Reductions along several dimensions, as means over the pixels of images whose channels are
last."""

from __future__ import annotations

from helpers.passes import run_passes_on

MEANS = """
func.func @f(%x: memref<112x112x32xf32>, %y: memref<32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c112 = arith.constant 112 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%k) = (%c0) to (%c32) step (%c1) {
    %sum = scf.for %i = %c0 to %c112 step %c1 iter_args(%outer = %zero) -> (f32) {
      %line = scf.for %j = %c0 to %c112 step %c1 iter_args(%inner = %outer) -> (f32) {
        %value = memref.load %x[%i, %j, %k] : memref<112x112x32xf32>
        %new = arith.addf %inner, %value : f32
        scf.yield %new : f32
      }
      scf.yield %line : f32
    }
    memref.store %sum, %y[%k] : memref<32xf32>
    scf.reduce
  }
  return
}
"""


def test_few_means_over_pixels_are_in_parts() -> None:
    """Both dimensions are one, whose parts the kernel of the means adds up."""
    module = str(run_passes_on(MEANS, "aotc-map-parallel-loops").module)
    assert "memref.alloc() : memref<112x32xf32>" in module
    assert module.count("gpu.launch ") == 2
