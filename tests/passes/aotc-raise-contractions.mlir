// RUN: aotc-mark-parallel,aotc-raise-contractions
// CHECK-LABEL: func.func @carried
// CHECK:       linalg.generic {{.*}} ins(%{{.*}} : f32) outs(%arg2
// CHECK:       linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : memref<4x8xf32>, memref<8x6xf32>) outs(%arg2
// CHECK-NOT:   .for
func.func @carried(%a: memref<4x8xf32>, %b: memref<8x6xf32>, %c: memref<4x6xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c6 step %c1 {
      %r = scf.for %k = %c0 to %c8 step %c1 iter_args(%sum = %zero) -> f32 {
        %x = memref.load %a[%i, %k] : memref<4x8xf32>
        %y = memref.load %b[%k, %j] : memref<8x6xf32>
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %sum, %p : f32
        scf.yield %s : f32
      }
      memref.store %r, %c[%i, %j] : memref<4x6xf32>
    }
  }
  return
}

// A part of each; the other loop is parallel.
// CHECK-LABEL: func.func @part
// CHECK-COUNT-3: memref.subview {{.*}} strided
// CHECK:       linalg.generic
// CHECK:       affine.parallel
func.func @part(%a: memref<4x8xf32>, %b: memref<8x6xf32>, %c: memref<4x6xf32>) {
  affine.for %i = 1 to 4 {
    affine.for %k = 0 to 5 {
      affine.for %j = 2 to 6 {
        %x = affine.load %a[%i, %k] : memref<4x8xf32>
        %y = affine.load %b[%k, %j] : memref<8x6xf32>
        %z = affine.load %c[%i, %j] : memref<4x6xf32>
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %z, %p : f32
        affine.store %s, %c[%i, %j] : memref<4x6xf32>
      }
    }
  }
  affine.for %i = 0 to 4 {
    %x = affine.load %a[%i, %i] : memref<4x8xf32>
    affine.store %x, %c[%i, 0] : memref<4x6xf32>
  }
  return
}

// The result is a factor; what a function says of parallel loops keeps the order of its sums.
// CHECK-LABEL: func.func @square
// CHECK-NOT:   linalg
func.func @square(%a: memref<8x8xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      affine.for %k = 0 to 8 {
        %x = affine.load %a[%i, %k] : memref<8x8xf32>
        %y = affine.load %a[%k, %j] : memref<8x8xf32>
        %z = affine.load %a[%i, %j] : memref<8x8xf32>
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %z, %p : f32
        affine.store %s, %a[%i, %j] : memref<8x8xf32>
      }
    }
  }
  return
}
func.func @says_so(%a: memref<8x8xf32>, %b: memref<8x8xf32>, %c: memref<8x8xf32>) {
  affine.parallel (%i, %j) = (0, 0) to (8, 8) {
    affine.for %k = 0 to 8 {
      %x = affine.load %a[%i, %k] : memref<8x8xf32>
      %y = affine.load %b[%k, %j] : memref<8x8xf32>
      %z = affine.load %c[%i, %j] : memref<8x8xf32>
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      affine.store %s, %c[%i, %j] : memref<8x8xf32>
    }
  }
  return
}
