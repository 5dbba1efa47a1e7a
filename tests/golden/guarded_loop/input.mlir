// A parallel loop of two dimensions, one of them dynamic and one shorter than the rows, so that
// they are not merged: the mapping, its guards, the names
// of arguments, and a scalar that reaches the kernel.
func.func @scale(%x: memref<?x100xf32>, %y: memref<?x100xf32> {aotc.name = "out"}, %by: f32)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %columns = arith.constant 99 : index
  %rows = memref.dim %x, %c0 : memref<?x100xf32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %columns) step (%c1, %c1) {
    %v = memref.load %x[%i, %j] : memref<?x100xf32>
    %w = arith.mulf %v, %by : f32
    memref.store %w, %y[%i, %j] : memref<?x100xf32>
  }
  return
}
