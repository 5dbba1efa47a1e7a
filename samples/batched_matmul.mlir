// The products of two batches of matrices, on tensors of any size: the result's size comes with
// the arguments, so the entry returns a new buffer.
func.func @batched_matmul(%a: tensor<?x?x?xf32>, %b: tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %batches = tensor.dim %a, %c0 : tensor<?x?x?xf32>
  %rows = tensor.dim %a, %c1 : tensor<?x?x?xf32>
  %columns = tensor.dim %b, %c2 : tensor<?x?x?xf32>
  %none = tensor.empty(%batches, %rows, %columns) : tensor<?x?x?xf32>
  %start = linalg.fill ins(%zero : f32) outs(%none : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %product = linalg.batch_matmul ins(%a, %b : tensor<?x?x?xf32>, tensor<?x?x?xf32>)
                                 outs(%start : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  return %product : tensor<?x?x?xf32>
}
