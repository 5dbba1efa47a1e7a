// RUN: func.func(linalg-generalize-named-ops),aotc-choose-matmul-kernels,aotc-outline-library
// Functions that launch the kernels of equal matmuls are inlined, and the kernels are there once.
// CHECK-NOT:   aotc.launch_function
// CHECK-LABEL: func.func @layers(
// CHECK:         gpu.launch_func @aotc_runs_on_gpu_matmul_1::@[[KERNEL:.*]] blocks{{.*}}%arg2
// CHECK:         gpu.launch_func @aotc_runs_on_gpu_matmul_1::@[[KERNEL]] blocks{{.*}}%arg3
func.func @layers(%a: memref<384x256xf32>, %b: memref<256x320xf32>, %c: memref<384x320xf32>, %d: memref<384x320xf32>) {
  linalg.matmul ins(%a, %b : memref<384x256xf32>, memref<256x320xf32>) outs(%c : memref<384x320xf32>)
  linalg.matmul ins(%a, %b : memref<384x256xf32>, memref<256x320xf32>) outs(%d : memref<384x320xf32>)
  return
}

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

// Equal kernels of one target are one; those of another one are not.
// CHECK-LABEL: func.func @targets(
// CHECK:         gpu.launch_func @aotc_runs_on_gpu_copy_0::@copy
// CHECK:         gpu.launch_func @aotc_runs_on_gpu_copy_0::@copy
// CHECK:         gpu.launch_func @aotc_runs_on_cpu_copy_0::@copy
func.func @targets(%x: memref<8xf32>, %y: memref<8xf32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1)
             threads(%i, %j, %k) in (%l = %c8, %m = %c1, %n = %c1)
             module(@aotc_runs_on_gpu_copy_0) function(@copy) {
    %v = memref.load %x[%i] : memref<8xf32>
    memref.store %v, %y[%i] : memref<8xf32>
    gpu.terminator
  }
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1)
             threads(%i, %j, %k) in (%l = %c8, %m = %c1, %n = %c1)
             module(@aotc_runs_on_gpu_copy_1) function(@copy) {
    %v = memref.load %x[%i] : memref<8xf32>
    memref.store %v, %y[%i] : memref<8xf32>
    gpu.terminator
  }
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1)
             threads(%i, %j, %k) in (%l = %c8, %m = %c1, %n = %c1)
             module(@aotc_runs_on_cpu_copy_0) function(@copy) {
    %v = memref.load %x[%i] : memref<8xf32>
    memref.store %v, %y[%i] : memref<8xf32>
    gpu.terminator
  }
  return
}
