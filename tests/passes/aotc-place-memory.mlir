// RUN: aotc-place-memory{memory=managed}
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%x: memref<8xf32>) kernel {
      gpu.return
    }
  }
  func.func @f(%n: index) {
    %given = memref.alloc() : memref<8xf32>
    %kept = memref.alloc() : memref<8xf32>
    gpu.launch_func @kernels::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%given : memref<8xf32>)
    memref.dealloc %given : memref<8xf32>
    memref.dealloc %kept : memref<8xf32>
    return
  }
}

// CHECK-LABEL: func.func @f
// CHECK:         %[[GIVEN:.*]] = gpu.alloc host_shared () : memref<8xf32>
// CHECK:         %[[KEPT:.*]] = memref.alloc()
// CHECK:         gpu.launch_func {{.*}} args(%[[GIVEN]] :
// CHECK:         gpu.dealloc async {{.*}} %[[GIVEN]]
// CHECK:         memref.dealloc %[[KEPT]]
