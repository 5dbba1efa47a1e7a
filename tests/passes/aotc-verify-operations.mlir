// RUN: aotc-verify-operations
// Accesses in loops and kernels are left to the run with part=accesses, behind the lowering of
// loops. The messages have neither the text nor the path that MLIR's have.
func.func @f(%m: memref<?xf32>, %i: index, %x: f32) -> memref<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %j = %c0 to %i step %c1 {
    memref.store %x, %m[%j] : memref<?xf32>
  }
  memref.store %x, %m[%i] : memref<?xf32>
  %window = memref.subview %m[%i] [4] [1] : memref<?xf32> to memref<4xf32, strided<[1], offset: ?>>
  memref.store %x, %window[%c0] : memref<4xf32, strided<[1], offset: ?>>
  return %m : memref<?xf32>
}
gpu.module @kernels {
  gpu.func @kernel(%m: memref<4xf32>, %x: f32) kernel {
    %i = gpu.thread_id x
    memref.store %x, %m[%i] : memref<4xf32>
    gpu.return
  }
}

// CHECK-LABEL: func.func @f(%arg0: memref<?xf32>, %arg1: index, %arg2: f32)
// CHECK-NOT:     cf.assert
// CHECK:         memref.store %arg2, %arg0[%arg3]
// CHECK:         %[[SIZE:.*]] = memref.dim %arg0
// CHECK:         %[[IS_IN:.*]] = arith.cmpi ult, %arg1, %[[SIZE]]
// CHECK:         cf.assert %[[IS_IN]], "memref.store: an index is out of bounds for dimension 0" {aotc.format = "memref.store: index %lld is out of bounds for dimension 0 of size %lld"}
// CHECK-NEXT:    memref.store %arg2, %arg0[%arg1]
// CHECK:         cf.assert %{{.*}}, "memref.subview: the offset is out of bounds for dimension 0" {aotc.format = "memref.subview: offset %lld is out of bounds for dimension 0 of size %lld"}
// CHECK:         cf.assert %{{.*}}, "memref.subview: the last index is out of bounds for dimension 0" {aotc.format = "memref.subview: last index %lld is out of bounds for dimension 0 of size %lld"}
// CHECK:         memref.subview
// CHECK-LABEL: gpu.func @kernel
// CHECK-NOT:     cf.assert
