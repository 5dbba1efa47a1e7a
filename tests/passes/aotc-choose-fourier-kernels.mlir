// RUN: aotc-choose-fourier-kernels
func.func @f(%x: memref<3x?x64x2xf32>, %y: memref<3x?x64x2xf32>, %roots: memref<64x2xf32>) attributes {llvm.emit_c_interface} {
  call @rows(%x, %y, %roots) : (memref<3x?x64x2xf32>, memref<3x?x64x2xf32>, memref<64x2xf32>) -> ()
  return
}
// Rows of another length than a power of two stay as they are.
// CHECK: func.func private @others
// CHECK-SAME: aotc.fourier
// CHECK-NEXT: return
func.func private @others(%x: memref<3x?x96x2xf32>, %y: memref<3x?x96x2xf32>, %roots: memref<96x2xf32>) attributes {aotc.fourier = {kind = "c2c", length = 96 : i64, sign = -1 : i64, in = "points_last", out = "points_last"}} {
  return
}
// CHECK: func.func private @rows
// CHECK-NOT: aotc.fourier
// CHECK-NOT: no_inline
// CHECK: gpu.launch
// CHECK-SAME: module(@aotc_runs_on_any_fourier_1) function(@fourier_c2c_f32_64_pp)
// Two passes of radix 8, and one exchange between them.
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: return
func.func private @rows(%x: memref<3x?x64x2xf32>, %y: memref<3x?x64x2xf32>, %roots: memref<64x2xf32>) attributes {no_inline, aotc.fourier = {kind = "c2c", length = 64 : i64, sign = -1 : i64, in = "points_last", out = "points_last"}} {
  return
}
