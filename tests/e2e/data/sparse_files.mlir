// A matrix from the file TENSOR0: its row sums, and all of it as FROSTT's text. And a buffer that
// grows, which the author frees.
#CSR = #sparse_tensor.encoding<{map = (i, j) -> (i : dense, j : compressed)}>
func.func private @getTensorFilename(index) -> !llvm.ptr
func.func @main() {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %name = call @getTensorFilename(%c0) : (index) -> !llvm.ptr
  %a = sparse_tensor.new %name : !llvm.ptr to tensor<3x?xf32, #CSR>
  %zeros = arith.constant dense<0.0> : tensor<3xf32>
  %sums = linalg.reduce ins(%a : tensor<3x?xf32, #CSR>) outs(%zeros : tensor<3xf32>)
    dimensions = [1] (%v: f32, %sum: f32) {
      %r = arith.addf %v, %sum : f32
      linalg.yield %r : f32
    }
  %v = vector.transfer_read %sums[%c0], %zero : tensor<3xf32>, vector<3xf32>
  vector.print %v : vector<3xf32>
  %stdout = llvm.mlir.addressof @empty : !llvm.ptr
  sparse_tensor.out %a, %stdout : tensor<3x?xf32, #CSR>, !llvm.ptr
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %two = arith.constant 2.0 : f32
  %small = memref.alloc(%c1) : memref<?xf32>
  %once, %n = sparse_tensor.push_back %c0, %small, %two : index, memref<?xf32>, f32
  %grown, %m = sparse_tensor.push_back %n, %once, %zero, %c3
    : index, memref<?xf32>, f32, index
  %g = vector.transfer_read %grown[%c0], %zero : memref<?xf32>, vector<4xf32>
  vector.print %g : vector<4xf32>
  memref.dealloc %grown : memref<?xf32>
  return
}
llvm.mlir.global internal constant @empty("\00")
