// RUN: func.func(linalg-generalize-named-ops),aotc-choose-matmul-kernels,aotc-outline-library
func.func @f(%a: memref<512x256xf32>, %b: memref<256x512xf32>, %c: memref<512x512xf32>) {
  linalg.matmul ins(%a, %b : memref<512x256xf32>, memref<256x512xf32>) outs(%c : memref<512x512xf32>)
  return
}

// The kernels are outlined before anything else looks at them, and are in the module at the end.
// CHECK-LABEL: func.func @f(
// CHECK-NOT:     gpu.launch {{.*}} module
// CHECK:         gpu.launch_func @aotc_runs_on_gpu_matmul_0::@matmul_f32_tt_simt_
// CHECK:         gpu.launch_func @aotc_runs_on_cpu_matmul_0::@matmul_f32_tt_cpu_
// CHECK:       gpu.module @aotc_runs_on_gpu_matmul_0
// CHECK:         gpu.func @matmul_f32_tt_simt_
// CHECK:           gpu.barrier
