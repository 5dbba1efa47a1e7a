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
  // Copies from two rows of a buffer: one kernel, which is told where the row begins.
  func.func @rows(%x: memref<2x64xf32>, %n: index) {
    %first = memref.subview %x[0, 0] [1, 64] [1, 1]
        : memref<2x64xf32> to memref<64xf32, strided<[1]>>
    %second = memref.subview %x[1, 0] [1, 64] [1, 1]
        : memref<2x64xf32> to memref<64xf32, strided<[1], offset: 64>>
    gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %n, %f = %n)
        threads(%i, %j, %k) in (%o = %n, %p = %n, %q = %n)
        workgroup(%tile : memref<64xf32, #gpu.address_space<workgroup>>) {
      %copied = nvgpu.device_async_copy %first[%i], %tile[%i], 1
          : memref<64xf32, strided<[1]>> to memref<64xf32, #gpu.address_space<workgroup>>
      nvgpu.device_async_wait %copied
      gpu.terminator
    }
    gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %n, %f = %n)
        threads(%i, %j, %k) in (%o = %n, %p = %n, %q = %n)
        workgroup(%tile : memref<64xf32, #gpu.address_space<workgroup>>) {
      %copied = nvgpu.device_async_copy %second[%i], %tile[%i], 1
          : memref<64xf32, strided<[1], offset: 64>> to memref<64xf32, #gpu.address_space<workgroup>>
      nvgpu.device_async_wait %copied
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
// CHECK:   gpu.func @[[ROWS:rows_kernel]](%{{.*}}: memref<64xf32, strided<[1], offset: ?>>
// CHECK-NOT: gpu.func
// CHECK: gpu.launch_func @[[MODULE]]::@g_kernel blocks
// CHECK: gpu.launch_func @[[MODULE]]::@[[ROWS]] blocks
// CHECK: gpu.launch_func @[[MODULE]]::@[[ROWS]] blocks
// CHECK-NOT: gpu.module
