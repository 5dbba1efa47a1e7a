// RUN: aotc-sink-constants
func.func @f(%x: memref<?xf32>, %n: index) {
  %one = arith.constant 1 : index
  %two = arith.constant 2.0 : f32
  gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %one, %f = %one)
      threads(%i, %j, %k) in (%o = %n, %p = %one, %q = %one) {
    %at = arith.addi %i, %one : index
    %again = arith.addi %at, %one : index
    memref.store %two, %x[%again] : memref<?xf32>
    gpu.terminator
  }
  gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %one, %f = %one)
      threads(%i, %j, %k) in (%o = %n, %p = %one, %q = %one) {
    memref.store %two, %x[%i] : memref<?xf32>
    gpu.terminator
  }
  return
}

// The host keeps what it uses itself.
// CHECK-LABEL: func.func @f
// CHECK-NEXT:    %[[HOST:.*]] = arith.constant 1 : index
// CHECK:         gpu.launch {{.*}} %[[HOST]]
// CHECK-NEXT:      %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT:      %[[TWO:.*]] = arith.constant 2.0
// CHECK-NEXT:      %[[AT:.*]] = arith.addi %{{.*}}, %[[ONE]]
// CHECK-NEXT:      arith.addi %[[AT]], %[[ONE]]
// CHECK-NEXT:      memref.store %[[TWO]]
// CHECK:         gpu.launch
// CHECK-NEXT:      %[[OTHER:.*]] = arith.constant 2.0
// CHECK-NEXT:      memref.store %[[OTHER]]
