// RUN: func.func(linalg-generalize-named-ops),aotc-choose-matmul-kernels
// Matmuls that only differ in the offsets of their operands, such as the steps of a recurrent network, call one function.
func.func @steps(%x: memref<96x512xf32>, %b: memref<256x160xf32>, %c: memref<96x160xf32>, %d: memref<96x160xf32>) {
  %0 = memref.subview %x[0, 128] [96, 256] [1, 1] : memref<96x512xf32> to memref<96x256xf32, strided<[512, 1], offset: 128>>
  %1 = memref.subview %x[0, 256] [96, 256] [1, 1] : memref<96x512xf32> to memref<96x256xf32, strided<[512, 1], offset: 256>>
  linalg.matmul ins(%0, %b : memref<96x256xf32, strided<[512, 1], offset: 128>>, memref<256x160xf32>) outs(%c : memref<96x160xf32>)
  linalg.matmul ins(%1, %b : memref<96x256xf32, strided<[512, 1], offset: 256>>, memref<256x160xf32>) outs(%d : memref<96x160xf32>)
  return
}
// CHECK-LABEL: func.func @steps(
// CHECK:         call @[[STEP:aotc_matmul_[0-9]+]](%{{.*}}, %arg1, %arg2) : (memref<96x256xf32, strided<[512, 1], offset: ?>>,
// CHECK-NOT:     gpu.launch
// CHECK:         call @[[STEP]](%{{.*}}, %arg1, %arg3)
// CHECK-NOT:     gpu.launch

// Gates are operands of the function as well.
func.func @gates(%a: memref<8x256xf32>, %w: memref<256x256xf32>, %y: memref<8x128xf32>, %z: memref<8x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<8x256xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<8x256xf32>)
  linalg.matmul ins(%a, %w : memref<8x256xf32>, memref<256x256xf32>) outs(%c : memref<8x256xf32>)
  %c0 = memref.subview %c[0, 0] [8, 128] [1, 1] : memref<8x256xf32> to memref<8x128xf32, strided<[256, 1]>>
  %c1 = memref.subview %c[0, 128] [8, 128] [1, 1] : memref<8x256xf32> to memref<8x128xf32, strided<[256, 1], offset: 128>>
  linalg.mul ins(%c0, %c1 : memref<8x128xf32, strided<[256, 1]>>, memref<8x128xf32, strided<[256, 1], offset: 128>>) outs(%y : memref<8x128xf32>)
  memref.dealloc %c : memref<8x256xf32>
  %d = memref.alloc() : memref<8x256xf32>
  linalg.fill ins(%zero : f32) outs(%d : memref<8x256xf32>)
  linalg.matmul ins(%a, %w : memref<8x256xf32>, memref<256x256xf32>) outs(%d : memref<8x256xf32>)
  %d0 = memref.subview %d[0, 0] [8, 128] [1, 1] : memref<8x256xf32> to memref<8x128xf32, strided<[256, 1]>>
  %d1 = memref.subview %d[0, 128] [8, 128] [1, 1] : memref<8x256xf32> to memref<8x128xf32, strided<[256, 1], offset: 128>>
  linalg.mul ins(%d0, %d1 : memref<8x128xf32, strided<[256, 1]>>, memref<8x128xf32, strided<[256, 1], offset: 128>>) outs(%z : memref<8x128xf32>)
  memref.dealloc %d : memref<8x256xf32>
  return
}
// CHECK-LABEL: func.func @gates(
// CHECK:         call @[[GATES:aotc_matmul_[0-9]+]](%arg0, %arg1, %{{.*}}, %arg2)
// CHECK:         call @[[GATES]](%arg0, %arg1, %{{.*}}, %arg3)

// Equal matmuls call functions that launch their kernels, which are built once. Constants are
// in the kernels: kernels with other constants are others.
func.func @layers(%a: memref<384x256xf32>, %b: memref<256x320xf32>, %c: memref<384x320xf32>, %d: memref<384x320xf32>, %e: memref<384x320xf32>) {
  %half = arith.constant 5.0e-01 : f32
  %third = arith.constant 3.0e-01 : f32
  linalg.matmul ins(%a, %b : memref<384x256xf32>, memref<256x320xf32>) outs(%c : memref<384x320xf32>)
  linalg.generic {
      indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%half : f32) outs(%c : memref<384x320xf32>) {
    ^bb0(%s: f32, %x: f32):
      %y = arith.mulf %x, %s : f32
      linalg.yield %y : f32
  }
  linalg.matmul ins(%a, %b : memref<384x256xf32>, memref<256x320xf32>) outs(%d : memref<384x320xf32>)
  linalg.generic {
      indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%third : f32) outs(%d : memref<384x320xf32>) {
    ^bb0(%s: f32, %x: f32):
      %y = arith.mulf %x, %s : f32
      linalg.yield %y : f32
  }
  linalg.matmul ins(%a, %b : memref<384x256xf32>, memref<256x320xf32>) outs(%e : memref<384x320xf32>)
  linalg.generic {
      indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%half : f32) outs(%e : memref<384x320xf32>) {
    ^bb0(%s: f32, %x: f32):
      %y = arith.mulf %x, %s : f32
      linalg.yield %y : f32
  }
  return
}
// CHECK-LABEL: func.func @layers(
// CHECK:         call @aotc_matmul_0(%arg0, %arg1, %arg2)
// CHECK-NOT:     gpu.launch
// CHECK:         call @aotc_matmul_3(%arg0, %arg1, %arg3)
// CHECK-NOT:     gpu.launch
// CHECK:         call @aotc_matmul_0(%arg0, %arg1, %arg4)
// CHECK-NOT:     gpu.launch

// The kernel for GPUs has choices for two alignments once the bias and the ReLU are fused, and one
// without: both are of one family, and the epilogue is fused.
memref.global "private" constant @filters : memref<16x3x3x3xf32> = dense<1.0>
func.func @strided(%x: memref<3x64x64xf32>, %bias: memref<16xf32>, %y: memref<16x31x31xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = memref.get_global @filters : memref<16x3x3x3xf32>
  %c = memref.alloc() : memref<16x31x31xf32>
  linalg.generic {
      indexing_maps = [affine_map<(o, h, w) -> (o)>, affine_map<(o, h, w) -> (o, h, w)>],
      iterator_types = ["parallel", "parallel", "parallel"]
    } ins(%bias : memref<16xf32>) outs(%c : memref<16x31x31xf32>) {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a : f32
  }
  linalg.generic {
      indexing_maps = [affine_map<(o, h, w, c, p, q) -> (c, h * 2 + p, w * 2 + q)>, affine_map<(o, h, w, c, p, q) -> (o, c, p, q)>, affine_map<(o, h, w, c, p, q) -> (o, h, w)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]
    } ins(%x, %w : memref<3x64x64xf32>, memref<16x3x3x3xf32>) outs(%c : memref<16x31x31xf32>) {
    ^bb0(%a: f32, %b: f32, %s: f32):
      %p = arith.mulf %a, %b : f32
      %t = arith.addf %s, %p : f32
      linalg.yield %t : f32
  }
  linalg.generic {
      indexing_maps = [affine_map<(o, h, w) -> (o, h, w)>, affine_map<(o, h, w) -> (o, h, w)>],
      iterator_types = ["parallel", "parallel", "parallel"]
    } ins(%c : memref<16x31x31xf32>) outs(%y : memref<16x31x31xf32>) {
    ^bb0(%a: f32, %b: f32):
      %m = arith.maximumf %a, %zero : f32
      linalg.yield %m : f32
  }
  memref.dealloc %c : memref<16x31x31xf32>
  return
}

func.func @f(%a: memref<512x256xf32>, %b: memref<256x512xf32>, %c: memref<512x512xf32>) {
  linalg.matmul ins(%a, %b : memref<512x256xf32>, memref<256x512xf32>) outs(%c : memref<512x512xf32>)
  return
}

// On GPUs, a depthwise convolution stays as it is.
func.func @depthwise(%x: memref<1x8x9x9xf32>, %w: memref<8x3x3xf32>, %y: memref<1x8x7x7xf32>) {
  linalg.depthwise_conv_2d_nchw_chw ins(%x, %w : memref<1x8x9x9xf32>, memref<8x3x3xf32>) outs(%y : memref<1x8x7x7xf32>)
  return
}

// A view of a constant is as aligned as the constant: no kernel for other addresses is chosen.
memref.global "private" constant @weights : memref<64x32x1x1xf32> = dense<1.0>
func.func @pointwise(%x: memref<8x32x49xf32>, %y: memref<8x64x49xf32>) {
  %g = memref.get_global @weights : memref<64x32x1x1xf32>
  %w = memref.collapse_shape %g [[0], [1, 2, 3]] : memref<64x32x1x1xf32> into memref<64x32xf32>
  linalg.generic {
      indexing_maps = [affine_map<(n, o, p, c) -> (o, c)>, affine_map<(n, o, p, c) -> (n, c, p)>, affine_map<(n, o, p, c) -> (n, o, p)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]
    } ins(%w, %x : memref<64x32xf32>, memref<8x32x49xf32>) outs(%y : memref<8x64x49xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
  }
  return
}

// CHECK-LABEL: func.func @strided(
// CHECK-NOT:     linalg.generic
// CHECK:         gpu.launch {{.*}} function(@implicit_gemm_f32_simt_{{.*}}_epilogue)
// CHECK-NOT:     linalg.generic

// CHECK-LABEL: func.func @f(
// CHECK:         %[[CAPABILITY:.*]] = call @aotc_compute_capability() : () -> i32
// CHECK:         %[[IS_GPU:.*]] = arith.cmpi sge, %[[CAPABILITY]],
// CHECK:         scf.if %[[IS_GPU]]
// CHECK:           gpu.launch {{.*}} module(@aotc_runs_on_gpu_matmul_2) function(@matmul_f32_tt_simt_
// CHECK:         } else {
// CHECK:           gpu.launch {{.*}} module(@aotc_runs_on_cpu_matmul_2) function(@matmul_f32_tt_cpu_

// CHECK-LABEL: func.func @depthwise(
// CHECK:         %[[CAPABILITY:.*]] = call @aotc_compute_capability() : () -> i32
// CHECK:         %[[IS_GPU:.*]] = arith.cmpi sge, %[[CAPABILITY]],
// CHECK:         scf.if %[[IS_GPU]]
// CHECK:           linalg.generic
// CHECK-NOT:       gpu.launch
// CHECK:         } else {
// CHECK-NOT:       linalg.generic
// CHECK:           gpu.launch {{.*}} module(@aotc_runs_on_cpu_matmul_1) function(@depthwise_conv_f32_cpu_3x3_s1_

// CHECK-LABEL: func.func @pointwise(
// CHECK-NOT:     memref.extract_aligned_pointer_as_index
// CHECK:         gpu.launch {{.*}} module(@aotc_runs_on_gpu_matmul_0) function(@implicit_gemm_f32_simt_
// CHECK-NOT:     module(@aotc_runs_on_gpu_matmul_0)
// CHECK:         gpu.launch {{.*}} module(@aotc_runs_on_cpu_matmul_0) function(@implicit_gemm_f32_cpu_
