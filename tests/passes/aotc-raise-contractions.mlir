// RUN: aotc-mark-explicit-parallelism,aotc-raise-contractions
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

// Statements beside a product get loops of their own, where iterations are apart.
// CHECK-LABEL: func.func @statements
// CHECK:       affine.parallel (%{{.*}}) = (0) to (5)
// CHECK:             affine.load %arg3
// CHECK:       linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1
// CHECK:       affine.parallel
// CHECK:         arith.maximumf
func.func @statements(%a: memref<5x6x8xf32>, %b: memref<5x8x7xf32>, %c: memref<5x6x7xf32>, %bias: memref<7xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %n = 0 to 5 {
    affine.for %i = 0 to 6 {
      affine.for %j = 0 to 7 {
        %v = affine.load %bias[%j] : memref<7xf32>
        affine.store %v, %c[%n, %i, %j] : memref<5x6x7xf32>
        affine.for %k = 0 to 8 {
          %x = affine.load %a[%n, %i, %k] : memref<5x6x8xf32>
          %y = affine.load %b[%n, %k, %j] : memref<5x8x7xf32>
          %z = affine.load %c[%n, %i, %j] : memref<5x6x7xf32>
          %p = arith.mulf %x, %y : f32
          %s = arith.addf %z, %p : f32
          affine.store %s, %c[%n, %i, %j] : memref<5x6x7xf32>
        }
      }
    }
    affine.for %i = 0 to 6 {
      affine.for %j = 0 to 7 {
        %z = affine.load %c[%n, %i, %j] : memref<5x6x7xf32>
        %r = arith.maximumf %z, %zero : f32
        affine.store %r, %c[%n, %i, %j] : memref<5x6x7xf32>
      }
    }
  }
  return
}

// Each step takes what the one before made: a product in a loop. A small one stays what it is.
// CHECK-LABEL: func.func @steps
// CHECK:       affine.for
// CHECK:         linalg.generic {{.*}} outs(%arg2
// CHECK-NOT:     linalg.generic
// CHECK-LABEL: func.func @end
func.func @steps(%a: memref<64x64xf32>, %x: memref<64x64xf32>, %y: memref<64x64xf32>, %z: memref<4x4xf32>) {
  affine.for %t = 0 to 9 {
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 64 {
        affine.for %k = 0 to 64 {
          %u = affine.load %a[%i, %k] : memref<64x64xf32>
          %v = affine.load %x[%k, %j] : memref<64x64xf32>
          %w = affine.load %y[%i, %j] : memref<64x64xf32>
          %p = arith.mulf %u, %v : f32
          %s = arith.addf %w, %p : f32
          affine.store %s, %y[%i, %j] : memref<64x64xf32>
        }
      }
    }
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 64 {
        %w = affine.load %y[%i, %j] : memref<64x64xf32>
        affine.store %w, %x[%i, %j] : memref<64x64xf32>
      }
    }
    affine.for %i = 0 to 4 {
      affine.for %j = 0 to 4 {
        affine.for %k = 0 to 4 {
          %u = affine.load %a[%i, %k] : memref<64x64xf32>
          %v = affine.load %x[%k, %j] : memref<64x64xf32>
          %w = affine.load %z[%i, %j] : memref<4x4xf32>
          %p = arith.mulf %u, %v : f32
          %s = arith.addf %w, %p : f32
          affine.store %s, %z[%i, %j] : memref<4x4xf32>
        }
      }
    }
  }
  return
}
func.func @end() {
  return
}

// The second statement of an iteration is for the first one of the next: they stay together.
// CHECK-LABEL: func.func @recurrence
// CHECK-NOT:   linalg
func.func @recurrence(%a: memref<5x6x8xf32>, %b: memref<5x8x7xf32>, %c: memref<6x6x7xf32>) {
  affine.for %n = 0 to 5 {
    affine.for %i = 0 to 6 {
      affine.for %j = 0 to 7 {
        affine.for %k = 0 to 8 {
          %x = affine.load %a[%n, %i, %k] : memref<5x6x8xf32>
          %y = affine.load %b[%n, %k, %j] : memref<5x8x7xf32>
          %z = affine.load %c[%n, %i, %j] : memref<6x6x7xf32>
          %p = arith.mulf %x, %y : f32
          %s = arith.addf %z, %p : f32
          affine.store %s, %c[%n, %i, %j] : memref<6x6x7xf32>
        }
      }
    }
    affine.for %i = 0 to 6 {
      affine.for %j = 0 to 7 {
        %z = affine.load %c[%n, %i, %j] : memref<6x6x7xf32>
        affine.store %z, %c[%n + 1, %i, %j] : memref<6x6x7xf32>
      }
    }
  }
  return
}
