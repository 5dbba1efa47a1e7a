// Two kernels and a buffer between them that the host reads, too: managed memory, and two
// results, one of them a memref that the caller frees.
func.func @sums(%x: memref<64xi32>) -> (i32, memref<64xi32>) attributes {llvm.emit_c_interface} {
  %c7 = arith.constant 7 : index
  %between = memref.alloc() : memref<64xi32>
  %result = memref.alloc() : memref<64xi32>
  affine.parallel (%i) = (0) to (64) {
    %v = affine.load %x[%i] : memref<64xi32>
    %w = arith.addi %v, %v : i32
    affine.store %w, %between[%i] : memref<64xi32>
  }
  affine.parallel (%i) = (0) to (64) {
    %v = affine.load %between[63 - %i] : memref<64xi32>
    affine.store %v, %result[%i] : memref<64xi32>
  }
  %seventh = memref.load %between[%c7] : memref<64xi32>
  memref.dealloc %between : memref<64xi32>
  return %seventh, %result : i32, memref<64xi32>
}
