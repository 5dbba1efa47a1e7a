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
// CHECK:       %[[TOTAL:.*]] = gpu.alloc () {aotc.temporary} : memref<1xf32>
// CHECK-NOT:   gpu.memcpy
// CHECK:       gpu.launch
// CHECK:       gpu.launch
// CHECK:       memref.store %{{.*}}, %[[TOTAL]][
// CHECK:       gpu.launch
// CHECK:       memref.load %[[TOTAL]][
// CHECK:       arith.negf
// CHECK:       gpu.dealloc %[[TOTAL]]
// CHECK-NOT:   memref.load

// What is computed of it between two loops is not computed in the first one.
func.func @handed_over_twice(%x: memref<40000xf32>, %y: memref<40000xf32>, %w: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 40000 : index
  %zero = arith.constant 0.0 : f32
  %total = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
    %v = memref.load %x[%i] : memref<40000xf32>
    %t = arith.addf %s, %v : f32
    scf.yield %t : f32
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %total, %y[%i] : memref<40000xf32>
    scf.reduce
  }
  %late = memref.load %w[%c0] : memref<1xf32>
  %product = arith.mulf %total, %late : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %product, %x[%i] : memref<40000xf32>
    scf.reduce
  }
  return
}

// CHECK-LABEL: func.func @handed_over_twice
// CHECK:       %[[TOTAL:.*]] = gpu.alloc () {aotc.temporary} : memref<1xf32>
// CHECK:       memref.store %{{.*}}, %[[TOTAL]][
// CHECK:       gpu.launch
// CHECK:       memref.load %[[TOTAL]][
// CHECK-NOT:   arith.mulf
// CHECK:       %[[LATE:.*]] = memref.load %arg2[
// CHECK:       gpu.launch
// CHECK:       %[[AGAIN:.*]] = memref.load %[[TOTAL]][
// CHECK:       arith.mulf %[[AGAIN]], %[[LATE]]
// CHECK:       gpu.dealloc %[[TOTAL]]

// All results of an operation count.
func.func @handed_to_host_code(%x: memref<40000xi32>) -> i1 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 40000 : index
  %zero = arith.constant 0 : i32
  %total = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (i32) {
    %v = memref.load %x[%i] : memref<40000xi32>
    %t = arith.addi %s, %v : i32
    scf.yield %t : i32
  }
  %sum, %overflow = arith.addui_extended %total, %total : i32, i1
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %sum, %x[%i] : memref<40000xi32>
    scf.reduce
  }
  return %overflow : i1
}

// CHECK-LABEL: func.func @handed_to_host_code
// CHECK:       gpu.memcpy
// CHECK:       %[[SUM:.*]], %[[OVERFLOW:.*]] = arith.addui_extended
// CHECK:       memref.store %[[SUM]],
// CHECK:       return %[[OVERFLOW]]

// What is computed of another value behind a total is moved in front of it once, in its order.
func.func @beside_a_total(%x: memref<40000xf32>, %other: i64, %out: memref<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 40000 : index
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2 : i64
  %total = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
    %v = memref.load %x[%i] : memref<40000xf32>
    %t = arith.addf %s, %v : f32
    scf.yield %t : f32
  }
  %rest = arith.remsi %other, %two : i64
  %is_odd = arith.cmpi ne, %rest, %two : i64
  %chosen = arith.select %is_odd, %rest, %two : i64
  %factor = arith.sitofp %chosen : i64 to f32
  %product = arith.mulf %factor, %total : f32
  memref.store %product, %out[] : memref<f32>
  return
}

// CHECK-LABEL: func.func @beside_a_total
// CHECK:       %[[REST:.*]] = arith.remsi
// CHECK:       %[[ODD:.*]] = arith.cmpi ne, %[[REST]]
// CHECK:       arith.select %[[ODD]], %[[REST]]
// CHECK:       gpu.launch

// The view that the place is stored to is created before the kernel that stores it.
func.func @stored_in_a_view(%x: memref<50xf32>, %out: memref<1xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c50 = arith.constant 50 : index
  %nowhere = arith.constant 0 : i64
  %start = arith.constant 0xFF800000 : f32
  %best:2 = scf.for %j = %c0 to %c50 step %c1 iter_args(%old = %start, %at = %nowhere) -> (f32, i64) {
    %new = memref.load %x[%j] : memref<50xf32>
    %here = arith.index_cast %j : index to i64
    %larger = arith.cmpf ogt, %new, %old : f32
    %value = arith.select %larger, %new, %old : f32
    %place = arith.select %larger, %here, %at : i64
    scf.yield %value, %place : f32, i64
  }
  %view = memref.collapse_shape %out [] : memref<1xi64> into memref<i64>
  memref.store %best#1, %view[] : memref<i64>
  return
}
// CHECK-LABEL: func.func @stored_in_a_view
// CHECK:         %[[VIEW:.*]] = memref.collapse_shape
// CHECK:         gpu.launch
// CHECK:           memref.store %{{.*}}, %[[VIEW]][]
