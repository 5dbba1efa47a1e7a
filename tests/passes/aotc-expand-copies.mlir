// RUN: aotc-expand-copies
func.func @f(%x: memref<4x4xf32>, %y: memref<4x4xf32>, %rows: memref<4x4xf32, strided<[8, 1]>>) {
  memref.copy %x, %y : memref<4x4xf32> to memref<4x4xf32>
  memref.copy %x, %rows : memref<4x4xf32> to memref<4x4xf32, strided<[8, 1]>>
  return
}

// CHECK:      memref.copy %arg0, %arg1
// CHECK-NOT:  memref.copy
// CHECK:      scf.for %[[I:.*]] =
// CHECK:        scf.for %[[J:.*]] =
// CHECK-NEXT:     %[[VALUE:.*]] = memref.load %arg0[%[[I]], %[[J]]]
// CHECK-NEXT:     memref.store %[[VALUE]], %arg2[%[[I]], %[[J]]]
