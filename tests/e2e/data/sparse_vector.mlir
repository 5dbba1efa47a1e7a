// A vector from the file TENSOR0: all of it, and its elements as FROSTT's text.
#SV = #sparse_tensor.encoding<{map = (i) -> (i : compressed), posWidth = 32, crdWidth = 32}>
func.func private @getTensorFilename(index) -> !llvm.ptr
func.func @main() {
  %c0 = arith.constant 0 : index
  %name = call @getTensorFilename(%c0) : (index) -> !llvm.ptr
  %a = sparse_tensor.new %name : !llvm.ptr to tensor<?xf32, #SV>
  %d = sparse_tensor.convert %a : tensor<?xf32, #SV> to tensor<?xf32>
  %zero = arith.constant 0.0 : f32
  %v = vector.transfer_read %d[%c0], %zero : tensor<?xf32>, vector<6xf32>
  vector.print %v : vector<6xf32>
  %stdout = llvm.mlir.addressof @empty : !llvm.ptr
  sparse_tensor.out %a, %stdout : tensor<?xf32, #SV>, !llvm.ptr
  return
}
llvm.mlir.global internal constant @empty("\00")
