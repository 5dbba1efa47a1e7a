// Results whose sizes depend on those of the arguments.
func.func @join(%x: memref<?x4xf32>, %y: tensor<?x?xf16>, %n: i64, %flag: i1)
    -> (tensor<?x?xf16>, i32, tensor<?xf32>, tensor<f32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %seven = arith.constant 7 : i32
  %twice = tensor.concat dim(1) %y, %y : (tensor<?x?xf16>, tensor<?x?xf16>) -> tensor<?x?xf16>
  %rows = memref.dim %x, %c0 : memref<?x4xf32>
  %more = arith.index_cast %n : i64 to index
  %sum = arith.addi %rows, %more : index
  %e = tensor.empty(%sum) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = tensor.empty() : tensor<f32>
  %g = linalg.fill ins(%zero : f32) outs(%s : tensor<f32>) -> tensor<f32>
  return %twice, %seven, %f, %g : tensor<?x?xf16>, i32, tensor<?xf32>, tensor<f32>
}
func.func @count(%x: tensor<?xindex>) -> tensor<?xf32> attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.extract %x[%c0] : tensor<?xindex>
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %f : tensor<?xf32>
}
func.func @add(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32>
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.add ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>)
    -> tensor<?xf32>
  return %r : tensor<?xf32>
}
