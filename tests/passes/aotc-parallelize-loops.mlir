// RUN: aotc-parallelize-loops
func.func @f(%x: memref<8x8xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 1 to 8 {
      %a = affine.load %x[%i, %j - 1] : memref<8x8xf32>
      affine.store %a, %x[%i, %j] : memref<8x8xf32>
    }
  }
  return
}
func.func @written(%x: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.parallel (%i) = (0) to (8) {
    affine.store %zero, %x[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.store %zero, %x[%i] : memref<8xf32>
  }
  return
}

// CHECK-LABEL: func.func @f(
// CHECK:         affine.parallel (%{{.*}}) = (0) to (8)
// CHECK:           affine.for %{{.*}} = 1 to 8
// CHECK-LABEL: func.func @written(
// CHECK:         affine.parallel
// CHECK:         affine.for
