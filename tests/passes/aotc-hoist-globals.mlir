// RUN: aotc-hoist-globals
memref.global constant @small : memref<8xf32> = dense<1.0>
memref.global constant @replaceable : memref<8xf32> = dense<1.0> {aotc.weight = "w"}
memref.global constant @large : memref<2000xf32> = dense<1.0>
func.func @f(%x: memref<?xf32>, %n: index) {
  gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %n, %f = %n)
      threads(%i, %j, %k) in (%o = %n, %p = %n, %q = %n) {
    %s = memref.get_global @small : memref<8xf32>
    %l = memref.get_global @large : memref<2000xf32>
    %r = memref.get_global @replaceable : memref<8xf32>
    %v = memref.load %s[%i] : memref<8xf32>
    memref.store %v, %r[%i] : memref<8xf32>
    memref.store %v, %l[%i] : memref<2000xf32>
    gpu.terminator
  }
  return
}

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    %[[LARGE:.*]] = memref.get_global @large
// CHECK-NEXT:    %[[REPLACEABLE:.*]] = memref.get_global @replaceable
// CHECK-NEXT:    gpu.launch
// CHECK-NEXT:      %[[SMALL:.*]] = memref.get_global @small
// CHECK:           memref.load %[[SMALL]]
// CHECK:           memref.store %{{.*}}, %[[REPLACEABLE]]
// CHECK:           memref.store %{{.*}}, %[[LARGE]]
