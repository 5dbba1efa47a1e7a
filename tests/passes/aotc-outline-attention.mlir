// RUN: aotc-decompose-aggregated-ops,canonicalize,cse,func.func(linalg-generalize-named-ops),cse,aotc-clone-fills,aotc-outline-attention
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

// CHECK:      func.func private @[[ATTENTION:aotc_attention_0]](%arg0: tensor<70x64xf16>, %arg1: tensor<131x64xf16>, %arg2: tensor<131x64xf16>, %arg3: tensor<70x64xf16>)
// CHECK-SAME:     aotc.attention_causal = false
// CHECK:        math.exp
// CHECK-LABEL: func.func @attention(
// CHECK-NOT:    math.exp
// CHECK:        %[[RESULT:.*]] = call @[[ATTENTION]](%arg0, %arg1, %arg2, %{{.*}})
// CHECK-NEXT:   return %[[RESULT]]
