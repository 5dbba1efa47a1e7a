// RUN: func.func(linalg-generalize-named-ops),aotc-choose-matmul-kernels
func.func @f(%a: memref<512x256xf32>, %b: memref<256x512xf32>, %c: memref<512x512xf32>) {
  linalg.matmul ins(%a, %b : memref<512x256xf32>, memref<256x512xf32>) outs(%c : memref<512x512xf32>)
  return
}

// CHECK-LABEL: func.func @f(
// CHECK:         %[[CAPABILITY:.*]] = call @aotc_compute_capability() : () -> i32
// CHECK:         %[[IS_GPU:.*]] = arith.cmpi sge, %[[CAPABILITY]],
// CHECK:         scf.if %[[IS_GPU]]
// CHECK:           gpu.launch {{.*}} module(@aotc_runs_on_gpu_matmul_0) function(@matmul_f32_tt_simt_
// CHECK:         } else {
// CHECK:           gpu.launch {{.*}} module(@aotc_runs_on_cpu_matmul_0) function(@matmul_f32_tt_cpu_
