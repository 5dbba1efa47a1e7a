"""What compute-sanitizer must find something in, so that it is known to look at kernels of ours."""

from __future__ import annotations

from tests.gpu.products.program import Program

# The last threads write behind the end of %x what others were to write, which none waits for.
_TEXT = """
func.func @proof_sm_90a(%x: memref<?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.constant 255 : index
  %threads = arith.constant 256 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1)
             workgroup(%shared : memref<256xf32, #gpu.address_space<workgroup>>) {
    %own = memref.load %x[%c0] : memref<?xf32>
    memref.store %own, %shared[%tx] : memref<256xf32, #gpu.address_space<workgroup>>
    %opposite = arith.subi %last, %tx : index
    %other = memref.load %shared[%opposite] : memref<256xf32, #gpu.address_space<workgroup>>
    %place = arith.minui %tx, %n : index
    memref.store %other, %x[%place] : memref<?xf32>
    gpu.terminator
  }
  return
}
"""
PROOF = Program("proof_sm_90a", _TEXT, {})
