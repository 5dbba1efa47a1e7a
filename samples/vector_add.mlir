// z = x + y for vectors of any one length: the size arrives with the memrefs.
func.func @vector_add(%x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %z, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %x[%i] : memref<?xf32>
    %b = memref.load %y[%i] : memref<?xf32>
    %sum = arith.addf %a, %b : f32
    memref.store %sum, %z[%i] : memref<?xf32>
  }
  return
}
