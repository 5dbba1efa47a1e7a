// RUN: aotc-map-parallel-loops{block=64}
func.func @f(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %zero, %x[%i] : memref<?xf32>
    scf.reduce
  }
  return
}

// CHECK-NOT:  scf.parallel
// CHECK:      gpu.launch {{.*}} threads(%[[THREAD:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c64,
// CHECK:        scf.for
// CHECK:          arith.addi %{{.*}}, %[[THREAD]]
// CHECK:          scf.if
// CHECK-NEXT:       memref.store %cst, %arg0[
// CHECK:        gpu.terminator

// A total that parallel loops alone use stays on the device.
func.func @handed_over(%x: memref<40000xf32>, %y: memref<40000xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 40000 : index
  %zero = arith.constant 0.0 : f32
  %total = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
    %v = memref.load %x[%i] : memref<40000xf32>
    %t = arith.addf %s, %v : f32
    scf.yield %t : f32
  }
  %negative = arith.negf %total : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<40000xf32>
    %t = arith.addf %v, %negative : f32
    memref.store %t, %y[%i] : memref<40000xf32>
    scf.reduce
  }
  return
}

// CHECK-LABEL: func.func @handed_over
// CHECK:       %[[TOTAL:.*]] = gpu.alloc () : memref<1xf32>
// CHECK-NOT:   gpu.memcpy
// CHECK:       gpu.launch
// CHECK:       gpu.launch
// CHECK:       memref.store %{{.*}}, %[[TOTAL]][
// CHECK:       gpu.launch
// CHECK:       memref.load %[[TOTAL]][
// CHECK:       arith.negf
// CHECK:       gpu.dealloc %[[TOTAL]]
// CHECK-NOT:   memref.load
