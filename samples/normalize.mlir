// Two loops over the same rows, with a buffer between them: squared lengths of the rows first,
// then each row divided by its length. aotc makes one loop of both, and what the buffer held is
// a value of the block. (Where loops do not join, such a memref.alloc goes to the device's memory.)
func.func @normalize(%x: memref<?x?xf32>, %y: memref<?x?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  %columns = memref.dim %x, %c1 : memref<?x?xf32>
  %squares = memref.alloc(%rows) : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%rows) step (%c1) {
    %zero = arith.constant 0.0 : f32
    %sum = scf.for %j = %c0 to %columns step %c1 iter_args(%partial = %zero) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %square = arith.mulf %v, %v : f32
      %next = arith.addf %partial, %square : f32
      scf.yield %next : f32
    }
    memref.store %sum, %squares[%i] : memref<?xf32>
  }
  scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %columns) step (%c1, %c1) {
    %v = memref.load %x[%i, %j] : memref<?x?xf32>
    %square = memref.load %squares[%i] : memref<?xf32>
    %length = math.sqrt %square : f32
    %unit = arith.divf %v, %length : f32
    memref.store %unit, %y[%i, %j] : memref<?x?xf32>
  }
  memref.dealloc %squares : memref<?xf32>
  return
}
