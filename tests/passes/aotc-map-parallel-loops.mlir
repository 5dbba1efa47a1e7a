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
