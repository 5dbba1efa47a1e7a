// RUN: aotc-mark-writable-tensors,one-shot-bufferize{bufferize-function-boundaries},aotc-free-buffers
// A wait says nothing of memory, and MLIR's deallocation would refuse it.
func.func @f(%x: tensor<8xf32>, %m: memref<8xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %empty = tensor.empty() : tensor<8xf32>
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %token = async.execute {
    %one = arith.constant 1.0 : f32
    memref.store %one, %m[%c0] : memref<8xf32>
    async.yield
  }
  async.await %token : !async.token
  %r = tensor.extract %y[%c0] : tensor<8xf32>
  return %r : f32
}

// CHECK-NOT:   func.func private
// CHECK-LABEL: func.func @f(
// CHECK:         %[[Y:.*]] = memref.alloc
// CHECK:         async.await %{{.*}} : !async.token
// CHECK:         %[[R:.*]] = memref.load %[[Y]]
// CHECK-NEXT:    memref.dealloc %[[Y]]
// CHECK-NEXT:    return %[[R]]
