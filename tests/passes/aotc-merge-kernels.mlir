// RUN: gpu-kernel-outlining,aotc-merge-kernels
module attributes {gpu.container_module} {
  gpu.module @by_hand {
    gpu.func @mine() kernel {
      gpu.return
    }
  }
  func.func @f(%x: memref<?xf32>, %n: index, %v: f32, %is_right: i1) {
    gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %n, %f = %n)
        threads(%i, %j, %k) in (%o = %n, %p = %n, %q = %n) {
      memref.store %v, %x[%i] : memref<?xf32>
      gpu.terminator
    }
    gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %n, %f = %n)
        threads(%i, %j, %k) in (%o = %n, %p = %n, %q = %n) {
      memref.store %v, %x[%j] : memref<?xf32>
      gpu.terminator
    }
    // Like the first: one kernel for both.
    gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %n, %f = %n)
        threads(%i, %j, %k) in (%o = %n, %p = %n, %q = %n) {
      memref.store %v, %x[%i] : memref<?xf32>
      gpu.terminator
    }
    // Messages say where they are: a kernel each.
    gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %n, %f = %n)
        threads(%i, %j, %k) in (%o = %n, %p = %n, %q = %n) {
      cf.assert %is_right, "wrong"
      gpu.terminator
    }
    gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %n, %f = %n)
        threads(%i, %j, %k) in (%o = %n, %p = %n, %q = %n) {
      cf.assert %is_right, "wrong"
      gpu.terminator
    }
    return
  }
  // Like the first, but another function's: its kernel has that name.
  func.func @g(%x: memref<?xf32>, %n: index, %v: f32) {
    gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %n, %f = %n)
        threads(%i, %j, %k) in (%o = %n, %p = %n, %q = %n) {
      memref.store %v, %x[%i] : memref<?xf32>
      gpu.terminator
    }
    return
  }
}

// CHECK: gpu.module @by_hand
// CHECK:   gpu.func @mine
// CHECK: gpu.launch_func @[[MODULE:.*_kernels]]::@[[ONE:.*]] blocks
// CHECK: gpu.launch_func @[[MODULE]]::@[[OTHER:.*]] blocks
// CHECK: gpu.launch_func @[[MODULE]]::@[[ONE]] blocks
// CHECK: gpu.launch_func @[[MODULE]]::@[[CHECKED:.*]] blocks
// CHECK: gpu.launch_func @[[MODULE]]::@[[CHECKED_TOO:.*]] blocks
// CHECK: gpu.module @[[MODULE]] {
// CHECK:   gpu.func @[[ONE]](
// CHECK:   gpu.func @[[OTHER]](
// CHECK:   gpu.func @[[CHECKED]](
// CHECK:   gpu.func @[[CHECKED_TOO]](
// CHECK:   gpu.func @g_kernel(
// CHECK: gpu.launch_func @[[MODULE]]::@g_kernel blocks
// CHECK-NOT: gpu.module
