// RUN: aotc-mark-writable-tensors
func.func @known(%x: tensor<8xf32>) -> tensor<8xf32> attributes {llvm.emit_c_interface} {
  return %x : tensor<8xf32>
}
func.func @unknown(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// CHECK:      func.func @known(%arg0: tensor<8xf32> {bufferization.writable = false}) -> tensor<8xf32>
// CHECK-SAME:     attributes {aotc.known_results, llvm.emit_c_interface}
// CHECK:      func.func @unknown(%arg0: tensor<?xf32>) -> tensor<?xf32> {
func.func @owned(%n: index, %x: tensor<?xf32>) -> (index, tensor<?xf32> {aotc.name = "y"}) attributes {llvm.emit_c_interface} {
  return %n, %x : index, tensor<?xf32>
}
// CHECK: @owned(%arg0: index, %arg1: tensor<?xf32> {bufferization.writable = false}) -> (index, tensor<?xf32> {aotc.name = "y", aotc.owned})

// The inliner would crash.
func.func @endless() {
  ub.unreachable
}
// CHECK: @endless() attributes {no_inline}
