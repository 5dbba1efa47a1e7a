#csr = #sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : compressed) }>
#csc = #sparse_tensor.encoding<{ map = (i, j) -> (j : dense, i : compressed) }>
#coo = #sparse_tensor.encoding<{ map = (i, j) -> (i : compressed(nonunique), j : singleton) }>
#dcsr = #sparse_tensor.encoding<{ map = (i, j) -> (i : compressed, j : compressed) }>
func.func @csr_csr_csr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #csr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #csr>
  %e = tensor.empty() : tensor<6x7xf64, #csr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #csr>, tensor<5x7xf64, #csr>) outs(%e : tensor<6x7xf64, #csr>) -> tensor<6x7xf64, #csr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #csr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
func.func @csr_csr_dcsr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #csr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #csr>
  %e = tensor.empty() : tensor<6x7xf64, #dcsr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #csr>, tensor<5x7xf64, #csr>) outs(%e : tensor<6x7xf64, #dcsr>) -> tensor<6x7xf64, #dcsr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #dcsr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
func.func @csr_dcsr_csr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #csr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #dcsr>
  %e = tensor.empty() : tensor<6x7xf64, #csr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #csr>, tensor<5x7xf64, #dcsr>) outs(%e : tensor<6x7xf64, #csr>) -> tensor<6x7xf64, #csr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #csr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
func.func @csr_dcsr_dcsr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #csr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #dcsr>
  %e = tensor.empty() : tensor<6x7xf64, #dcsr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #csr>, tensor<5x7xf64, #dcsr>) outs(%e : tensor<6x7xf64, #dcsr>) -> tensor<6x7xf64, #dcsr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #dcsr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
func.func @csr_coo_csr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #csr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #coo>
  %e = tensor.empty() : tensor<6x7xf64, #csr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #csr>, tensor<5x7xf64, #coo>) outs(%e : tensor<6x7xf64, #csr>) -> tensor<6x7xf64, #csr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #csr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
func.func @csr_coo_dcsr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #csr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #coo>
  %e = tensor.empty() : tensor<6x7xf64, #dcsr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #csr>, tensor<5x7xf64, #coo>) outs(%e : tensor<6x7xf64, #dcsr>) -> tensor<6x7xf64, #dcsr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #dcsr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
func.func @csr_csc_csr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #csr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #csc>
  %e = tensor.empty() : tensor<6x7xf64, #csr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #csr>, tensor<5x7xf64, #csc>) outs(%e : tensor<6x7xf64, #csr>) -> tensor<6x7xf64, #csr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #csr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
func.func @csr_csc_dcsr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #csr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #csc>
  %e = tensor.empty() : tensor<6x7xf64, #dcsr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #csr>, tensor<5x7xf64, #csc>) outs(%e : tensor<6x7xf64, #dcsr>) -> tensor<6x7xf64, #dcsr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #dcsr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
func.func @dcsr_csr_csr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #dcsr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #csr>
  %e = tensor.empty() : tensor<6x7xf64, #csr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #dcsr>, tensor<5x7xf64, #csr>) outs(%e : tensor<6x7xf64, #csr>) -> tensor<6x7xf64, #csr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #csr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
func.func @dcsr_csr_dcsr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #dcsr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #csr>
  %e = tensor.empty() : tensor<6x7xf64, #dcsr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #dcsr>, tensor<5x7xf64, #csr>) outs(%e : tensor<6x7xf64, #dcsr>) -> tensor<6x7xf64, #dcsr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #dcsr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
func.func @dcsr_dcsr_csr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #dcsr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #dcsr>
  %e = tensor.empty() : tensor<6x7xf64, #csr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #dcsr>, tensor<5x7xf64, #dcsr>) outs(%e : tensor<6x7xf64, #csr>) -> tensor<6x7xf64, #csr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #csr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
func.func @dcsr_dcsr_dcsr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #dcsr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #dcsr>
  %e = tensor.empty() : tensor<6x7xf64, #dcsr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #dcsr>, tensor<5x7xf64, #dcsr>) outs(%e : tensor<6x7xf64, #dcsr>) -> tensor<6x7xf64, #dcsr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #dcsr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
func.func @dcsr_coo_csr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #dcsr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #coo>
  %e = tensor.empty() : tensor<6x7xf64, #csr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #dcsr>, tensor<5x7xf64, #coo>) outs(%e : tensor<6x7xf64, #csr>) -> tensor<6x7xf64, #csr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #csr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
func.func @dcsr_coo_dcsr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #dcsr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #coo>
  %e = tensor.empty() : tensor<6x7xf64, #dcsr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #dcsr>, tensor<5x7xf64, #coo>) outs(%e : tensor<6x7xf64, #dcsr>) -> tensor<6x7xf64, #dcsr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #dcsr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
func.func @dcsr_csc_csr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #dcsr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #csc>
  %e = tensor.empty() : tensor<6x7xf64, #csr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #dcsr>, tensor<5x7xf64, #csc>) outs(%e : tensor<6x7xf64, #csr>) -> tensor<6x7xf64, #csr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #csr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
func.func @dcsr_csc_dcsr(%x: tensor<6x5xf64>, %d: tensor<5x7xf64>) -> tensor<6x7xf64> attributes {llvm.emit_c_interface} {
  %xs = sparse_tensor.convert %x : tensor<6x5xf64> to tensor<6x5xf64, #dcsr>
  %ds = sparse_tensor.convert %d : tensor<5x7xf64> to tensor<5x7xf64, #csc>
  %e = tensor.empty() : tensor<6x7xf64, #dcsr>
  %q = linalg.matmul ins(%xs, %ds : tensor<6x5xf64, #dcsr>, tensor<5x7xf64, #csc>) outs(%e : tensor<6x7xf64, #dcsr>) -> tensor<6x7xf64, #dcsr>
  %r = sparse_tensor.convert %q : tensor<6x7xf64, #dcsr> to tensor<6x7xf64>
  return %r : tensor<6x7xf64>
}
