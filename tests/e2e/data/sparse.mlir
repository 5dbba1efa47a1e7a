// Sparse matrices as arguments and results of entries, by the arrays of their levels.
#CSR = #sparse_tensor.encoding<{
  map = (i, j) -> (i : dense, j : compressed), posWidth = 32, crdWidth = 32
}>
#COO = #sparse_tensor.encoding<{
  map = (i, j) -> (i : compressed(nonunique), j : singleton(soa))
}>
func.func @matvec(%a: tensor<50x90xf32, #CSR>, %x: tensor<90xf32>, %y: tensor<50xf32>)
    -> tensor<50xf32> attributes {llvm.emit_c_interface} {
  %r = linalg.matvec ins(%a, %x : tensor<50x90xf32, #CSR>, tensor<90xf32>)
    outs(%y : tensor<50xf32>) -> tensor<50xf32>
  return %r : tensor<50xf32>
}
func.func @twice(%a: tensor<50x90xf32, #CSR>, %x: tensor<90xf32>, %y: tensor<50xf32>)
    -> tensor<50xf32> attributes {llvm.emit_c_interface} {
  %once = call @matvec(%a, %x, %y)
    : (tensor<50x90xf32, #CSR>, tensor<90xf32>, tensor<50xf32>) -> tensor<50xf32>
  %r = call @matvec(%a, %x, %once)
    : (tensor<50x90xf32, #CSR>, tensor<90xf32>, tensor<50xf32>) -> tensor<50xf32>
  return %r : tensor<50xf32>
}
func.func @matmul(%a: tensor<50x90xf32, #CSR>, %x: tensor<90x7xf32>) -> tensor<50x7xf32>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<50x7xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<50x7xf32>) -> tensor<50x7xf32>
  %r = linalg.matmul ins(%a, %x : tensor<50x90xf32, #CSR>, tensor<90x7xf32>)
    outs(%zeros : tensor<50x7xf32>) -> tensor<50x7xf32>
  return %r : tensor<50x7xf32>
}
func.func @scale(%a: tensor<50x90xf32, #CSR>, %s: f32) -> tensor<50x90xf32, #CSR>
    attributes {llvm.emit_c_interface} {
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]
    } outs(%a : tensor<50x90xf32, #CSR>) {
  ^bb0(%v: f32):
    %scaled = arith.mulf %v, %s : f32
    linalg.yield %scaled : f32
  } -> tensor<50x90xf32, #CSR>
  return %r : tensor<50x90xf32, #CSR>
}
func.func @from_dense(%d: tensor<50x90xf32>) -> tensor<50x90xf32, #CSR>
    attributes {llvm.emit_c_interface} {
  %a = sparse_tensor.convert %d : tensor<50x90xf32> to tensor<50x90xf32, #CSR>
  return %a : tensor<50x90xf32, #CSR>
}
func.func @to_dense(%a: tensor<50x90xf32, #COO>) -> tensor<50x90xf32>
    attributes {llvm.emit_c_interface} {
  %d = sparse_tensor.convert %a : tensor<50x90xf32, #COO> to tensor<50x90xf32>
  return %d : tensor<50x90xf32>
}
func.func @sampled(%a: tensor<50x90xf32, #CSR>, %x: tensor<50x4xf32>, %y: tensor<4x90xf32>)
    -> tensor<50x90xf32> attributes {llvm.emit_c_interface} {
  %zeros = arith.constant dense<0.0> : tensor<50x90xf32>
  %empty = tensor.empty() : tensor<50x90xf32>
  %xy = linalg.matmul ins(%x, %y : tensor<50x4xf32>, tensor<4x90xf32>)
    outs(%zeros : tensor<50x90xf32>) -> tensor<50x90xf32>
  %r = linalg.mul ins(%xy, %a : tensor<50x90xf32>, tensor<50x90xf32, #CSR>)
    outs(%empty : tensor<50x90xf32>) -> tensor<50x90xf32>
  return %r : tensor<50x90xf32>
}
