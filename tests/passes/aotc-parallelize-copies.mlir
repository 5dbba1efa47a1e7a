// RUN: aotc-parallelize-copies
func.func @f(%x: memref<4x?xf32>, %y: memref<4x?xf32>) {
  memref.copy %x, %y : memref<4x?xf32> to memref<4x?xf32>
  return
}

// CHECK:      %[[COLUMNS:.*]] = memref.dim %arg0, %c1
// CHECK:      scf.parallel (%[[I:.*]], %[[J:.*]]) = (%{{.*}}, %{{.*}}) to (%c4, %[[COLUMNS]])
// CHECK-NEXT:   %[[VALUE:.*]] = memref.load %arg0[%[[I]], %[[J]]]
// CHECK-NEXT:   memref.store %[[VALUE]], %arg1[%[[I]], %[[J]]]
// CHECK-NOT:  memref.copy
