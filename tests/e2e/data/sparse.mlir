// Sparse matrices as arguments and results of entries, by the arrays of their levels.
#CSR = #sparse_tensor.encoding<{
  map = (i, j) -> (i : dense, j : compressed), posWidth = 32, crdWidth = 32
}>
#COO = #sparse_tensor.encoding<{
  map = (i, j) -> (i : compressed(nonunique), j : singleton(soa))
}>
#CSC = #sparse_tensor.encoding<{map = (i, j) -> (j : dense, i : compressed)}>
#BSR = #sparse_tensor.encoding<{
  map = (i, j) -> (i floordiv 2 : dense, j floordiv 3 : compressed, i mod 2 : dense, j mod 3 : dense),
  crdWidth = 16
}>
#DCSR = #sparse_tensor.encoding<{map = (i, j) -> (i : compressed, j : compressed)}>
#UNORDERED = #sparse_tensor.encoding<{map = (i) -> (i : compressed(nonordered)), crdWidth = 16}>
#VECTOR = #sparse_tensor.encoding<{map = (i) -> (i : compressed)}>
#LIST = #sparse_tensor.encoding<{map = (i) -> (i : compressed), crdWidth = 8}>
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

// Of sizes that are not known.
func.func @any_matvec(%a: tensor<?x?xf32, #CSR>, %x: tensor<?xf32>, %y: tensor<?xf32>)
    -> tensor<?xf32> attributes {llvm.emit_c_interface} {
  %r = linalg.matvec ins(%a, %x : tensor<?x?xf32, #CSR>, tensor<?xf32>)
    outs(%y : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @any_scale(%s: f32, %a: tensor<?x90xf32, #CSR>, %t: f32) -> tensor<?x90xf32, #CSR>
    attributes {llvm.emit_c_interface} {
  %st = arith.mulf %s, %t : f32
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]
    } outs(%a : tensor<?x90xf32, #CSR>) {
  ^bb0(%v: f32):
    %scaled = arith.mulf %v, %st : f32
    linalg.yield %scaled : f32
  } -> tensor<?x90xf32, #CSR>
  return %r : tensor<?x90xf32, #CSR>
}
func.func @csr_to_csc(%a: tensor<?x?xf32, #CSR>) -> tensor<?x?xf32, #CSC>
    attributes {llvm.emit_c_interface} {
  %r = sparse_tensor.convert %a : tensor<?x?xf32, #CSR> to tensor<?x?xf32, #CSC>
  return %r : tensor<?x?xf32, #CSC>
}
func.func @csc_to_coo(%a: tensor<?x?xf32, #CSC>) -> tensor<?x?xf32, #COO>
    attributes {llvm.emit_c_interface} {
  %r = sparse_tensor.convert %a : tensor<?x?xf32, #CSC> to tensor<?x?xf32, #COO>
  return %r : tensor<?x?xf32, #COO>
}
func.func @coo_to_dcsr(%a: tensor<?x?xf32, #COO>)
    -> (tensor<2xf32>, tensor<?x?xf32, #DCSR>, index) attributes {llvm.emit_c_interface} {
  %r = sparse_tensor.convert %a : tensor<?x?xf32, #COO> to tensor<?x?xf32, #DCSR>
  %n = sparse_tensor.number_of_entries %r : tensor<?x?xf32, #DCSR>
  %ones = arith.constant dense<1.0> : tensor<2xf32>
  return %ones, %r, %n : tensor<2xf32>, tensor<?x?xf32, #DCSR>, index
}
func.func @dcsr_to_dense(%a: tensor<?x?xf32, #DCSR>) -> tensor<?x?xf32>
    attributes {llvm.emit_c_interface} {
  %r = sparse_tensor.convert %a : tensor<?x?xf32, #DCSR> to tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
func.func @bsr_to_dense(%a: tensor<?x?xf32, #BSR>) -> tensor<?x?xf32>
    attributes {llvm.emit_c_interface} {
  %r = sparse_tensor.convert %a : tensor<?x?xf32, #BSR> to tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
func.func @dense_to_bsr(%a: tensor<50x90xf32>) -> tensor<50x90xf32, #BSR>
    attributes {llvm.emit_c_interface} {
  %r = sparse_tensor.convert %a : tensor<50x90xf32> to tensor<50x90xf32, #BSR>
  return %r : tensor<50x90xf32, #BSR>
}
func.func @list_sum(%a: tensor<?xf32, #LIST>) -> f32 attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %init = tensor.from_elements %zero : tensor<f32>
  %sums = linalg.reduce ins(%a : tensor<?xf32, #LIST>) outs(%init : tensor<f32>)
    dimensions = [0] (%v: f32, %sum: f32) {
      %r = arith.addf %v, %sum : f32
      linalg.yield %r : f32
    }
  %sum = tensor.extract %sums[] : tensor<f32>
  return %sum : f32
}
func.func @sort(%a: tensor<?xf32, #UNORDERED>) -> tensor<?xf32, #VECTOR>
    attributes {llvm.emit_c_interface} {
  %r = sparse_tensor.convert %a : tensor<?xf32, #UNORDERED> to tensor<?xf32, #VECTOR>
  return %r : tensor<?xf32, #VECTOR>
}
func.func @bsr_matvec(%a: tensor<50x90xf32, #BSR>, %x: tensor<90xf32>, %y: tensor<50xf32>)
    -> tensor<50xf32> attributes {llvm.emit_c_interface} {
  %r = linalg.matvec ins(%a, %x : tensor<50x90xf32, #BSR>, tensor<90xf32>)
    outs(%y : tensor<50xf32>) -> tensor<50xf32>
  return %r : tensor<50xf32>
}
