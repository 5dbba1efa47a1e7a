// RUN: aotc-mark-writable-tensors,canonicalize,one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},aotc-return-in-arguments
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> attributes {llvm.emit_c_interface} {
  %empty = tensor.empty() : tensor<8xf32>
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
// The sizes become a part of the type, and the allocation another.
func.func @freed(%x: tensor<8xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %buffer = memref.alloc(%c8) : memref<?xf32>
  %v = tensor.extract %x[%c0] : tensor<8xf32>
  memref.store %v, %buffer[%c0] : memref<?xf32>
  %r = memref.load %buffer[%c8] : memref<?xf32>
  memref.dealloc %buffer : memref<?xf32>
  return %r : f32
}
// What a called function returns is written where the caller wants it.
func.func @called(%x: tensor<8xf32>) -> tensor<8xf32> attributes {llvm.emit_c_interface} {
  %y = func.call @private(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
func.func private @private(%x: tensor<8xf32>) -> tensor<8xf32> attributes {no_inline} {
  %empty = tensor.empty() : tensor<8xf32>
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// CHECK:      func.func @f(%arg0: memref<8xf32>, %arg1: memref<8xf32> {aotc.name = "result0"})
// CHECK-NOT:    memref.alloc
// CHECK:        linalg.exp ins(%arg0 : memref<8xf32>) outs(%arg1 : memref<8xf32>)
// CHECK-NEXT:   return
// CHECK-NEXT: }
// CHECK-LABEL: func.func @freed(
// CHECK:         memref.alloc() {bufferization.manual_deallocation} : memref<8xf32>
// CHECK:      func.func @called(%arg0: memref<8xf32>, %arg1: memref<8xf32> {aotc.name = "result0"})
// CHECK-NEXT:   call @private(%arg0, %arg1)
// CHECK-NEXT:   return
