// RUN: func.func(linalg-generalize-named-ops),aotc-choose-matmul-kernels
func.func @f(%a: memref<512x256xf32>, %b: memref<256x512xf32>, %c: memref<512x512xf32>) {
  linalg.matmul ins(%a, %b : memref<512x256xf32>, memref<256x512xf32>) outs(%c : memref<512x512xf32>)
  return
}

// On GPUs, a depthwise convolution stays as it is.
func.func @depthwise(%x: memref<1x8x9x9xf32>, %w: memref<8x3x3xf32>, %y: memref<1x8x7x7xf32>) {
  linalg.depthwise_conv_2d_nchw_chw ins(%x, %w : memref<1x8x9x9xf32>, memref<8x3x3xf32>) outs(%y : memref<1x8x7x7xf32>)
  return
}

// CHECK-LABEL: func.func @f(
// CHECK:         %[[CAPABILITY:.*]] = call @aotc_compute_capability() : () -> i32
// CHECK:         %[[IS_GPU:.*]] = arith.cmpi sge, %[[CAPABILITY]],
// CHECK:         scf.if %[[IS_GPU]]
// CHECK:           gpu.launch {{.*}} module(@aotc_runs_on_gpu_matmul_1) function(@matmul_f32_tt_simt_
// CHECK:         } else {
// CHECK:           gpu.launch {{.*}} module(@aotc_runs_on_cpu_matmul_1) function(@matmul_f32_tt_cpu_

// CHECK-LABEL: func.func @depthwise(
// CHECK:         %[[CAPABILITY:.*]] = call @aotc_compute_capability() : () -> i32
// CHECK:         %[[IS_GPU:.*]] = arith.cmpi sge, %[[CAPABILITY]],
// CHECK:         scf.if %[[IS_GPU]]
// CHECK:           linalg.generic
// CHECK-NOT:       gpu.launch
// CHECK:         } else {
// CHECK-NOT:       linalg.generic
// CHECK:           gpu.launch {{.*}} module(@aotc_runs_on_cpu_matmul_0) function(@depthwise_conv_f32_cpu_3x3_s1_
