// RUN: aotc-decompose-aggregated-ops,canonicalize,cse,func.func(linalg-generalize-named-ops),cse,aotc-clone-fills,aotc-outline-attention,canonicalize,cse,one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},drop-equivalent-buffer-results,aotc-choose-attention-kernels
func.func @attention(%q: tensor<70x64xf16>, %k: tensor<131x64xf16>, %v: tensor<131x64xf16>) -> tensor<70x64xf16> attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.125 : f32
  %e0 = tensor.empty() : tensor<64x131xf16>
  %kt = linalg.transpose ins(%k : tensor<131x64xf16>) outs(%e0 : tensor<64x131xf16>) permutation = [1, 0]
  %e1 = tensor.empty() : tensor<70x131xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e1 : tensor<70x131xf32>) -> tensor<70x131xf32>
  %s = linalg.matmul ins(%q, %kt : tensor<70x64xf16>, tensor<64x131xf16>) outs(%z : tensor<70x131xf32>) -> tensor<70x131xf32>
  %sc = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<70x131xf32>) outs(%e1 : tensor<70x131xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = arith.mulf %a, %scale : f32
    linalg.yield %b : f32
  } -> tensor<70x131xf32>
  %w = linalg.softmax dimension(1) ins(%sc : tensor<70x131xf32>) outs(%e1 : tensor<70x131xf32>) -> tensor<70x131xf32>
  %e2 = tensor.empty() : tensor<70x131xf16>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<70x131xf32>) outs(%e2 : tensor<70x131xf16>) {
  ^bb0(%a: f32, %o: f16):
    %b = arith.truncf %a : f32 to f16
    linalg.yield %b : f16
  } -> tensor<70x131xf16>
  %e3 = tensor.empty() : tensor<70x64xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<70x64xf32>) -> tensor<70x64xf32>
  %r = linalg.matmul ins(%n, %v : tensor<70x131xf16>, tensor<131x64xf16>) outs(%z3 : tensor<70x64xf32>) -> tensor<70x64xf32>
  %e4 = tensor.empty() : tensor<70x64xf16>
  %f = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%r : tensor<70x64xf32>) outs(%e4 : tensor<70x64xf16>) {
  ^bb0(%a: f32, %o: f16):
    %b = arith.truncf %a : f32 to f16
    linalg.yield %b : f16
  } -> tensor<70x64xf16>
  return %f : tensor<70x64xf16>
}

// CHECK-LABEL: func.func @attention(
// CHECK:         %[[CAPABILITY:.*]] = call @aotc_compute_capability() : () -> i32
// CHECK:         %[[IS_GPU:.*]] = arith.cmpi sge, %[[CAPABILITY]], %c80_i32
// CHECK:         scf.if %[[IS_GPU]]
// CHECK:           gpu.launch {{.*}} module(@aotc_runs_on_sm_90a_attention_0) function(@attention_f16_d64_wgmma_
// CHECK:           } else {
// CHECK:             gpu.launch {{.*}} module(@aotc_runs_on_gpu_attention_0) function(@attention_f16_d64_mma_sync_
// CHECK:         } else {
// CHECK:           gpu.launch {{.*}} module(@aotc_runs_on_cpu_attention_0) function(@attention_f16_d64_cpu_
// CHECK-NOT:     aotc_attention_0
