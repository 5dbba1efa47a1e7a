// The softmax of each row of a matrix in memory, of any size: one operation of linalg, of which
// aotc makes the reductions and the exponentials.
func.func @softmax(%x: memref<?x?xf32>, %y: memref<?x?xf32>) attributes {llvm.emit_c_interface} {
  linalg.softmax dimension(1) ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>)
  return
}
