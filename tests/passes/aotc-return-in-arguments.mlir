// RUN: aotc-mark-tensors,one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},aotc-return-in-arguments
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> attributes {llvm.emit_c_interface} {
  %empty = tensor.empty() : tensor<8xf32>
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// CHECK:      func.func @f(%arg0: memref<8xf32>, %arg1: memref<8xf32> {aotc.name = "result0"})
// CHECK-NOT:    memref.alloc
// CHECK:        linalg.exp ins(%arg0 : memref<8xf32>) outs(%arg1 : memref<8xf32>)
// CHECK-NEXT:   return
// CHECK-NEXT: }
