// RUN: aotc-sink-vectors
func.func @f(%x: memref<?xvector<4xf32>>, %value: f32, %n: index) {
  %v = vector.broadcast %value : f32 to vector<4xf32>
  gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %n, %f = %n)
      threads(%i, %j, %k) in (%o = %n, %p = %n, %q = %n) {
    memref.store %v, %x[%i] : memref<?xvector<4xf32>>
    gpu.terminator
  }
  return
}

// CHECK:      gpu.launch
// CHECK-NEXT:   %[[VECTOR:.*]] = vector.broadcast %arg1
// CHECK-NEXT:   memref.store %[[VECTOR]], %arg0
