// RUN: aotc-fuse-dequantization,canonicalize,cse
// A byte has two weights, the low half first; 32 inputs have one scale.
func.func @product(%x: tensor<64xf16>, %packed: tensor<4096x32xi8>, %scales: tensor<4096x2xf16>, %zeros: tensor<4096xf32>) -> tensor<4096xf32> attributes {llvm.emit_c_interface} {
  %shifts = arith.constant dense<[0, 4]> : tensor<2xi8>
  %c15 = arith.constant 15 : i8
  %e0 = tensor.empty() : tensor<4096x32x2xi8>
  %halves = linalg.generic {indexing_maps = [affine_map<(n, b, h) -> (n, b)>, affine_map<(n, b, h) -> (h)>, affine_map<(n, b, h) -> (n, b, h)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%packed, %shifts : tensor<4096x32xi8>, tensor<2xi8>) outs(%e0 : tensor<4096x32x2xi8>) {
  ^bb0(%byte: i8, %shift: i8, %o: i8):
    %moved = arith.shrui %byte, %shift : i8
    %half = arith.andi %moved, %c15 : i8
    linalg.yield %half : i8
  } -> tensor<4096x32x2xi8>
  %rows = tensor.collapse_shape %halves [[0], [1, 2]] : tensor<4096x32x2xi8> into tensor<4096x64xi8>
  %groups = tensor.expand_shape %rows [[0], [1, 2]] output_shape [4096, 2, 32] : tensor<4096x64xi8> into tensor<4096x2x32xi8>
  %e1 = tensor.empty() : tensor<4096x2x32xf16>
  %scaled = linalg.generic {indexing_maps = [affine_map<(n, g, k) -> (n, g, k)>, affine_map<(n, g, k) -> (n, g)>, affine_map<(n, g, k) -> (n, g, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%groups, %scales : tensor<4096x2x32xi8>, tensor<4096x2xf16>) outs(%e1 : tensor<4096x2x32xf16>) {
  ^bb0(%q: i8, %scale: f16, %o: f16):
    %number = arith.uitofp %q : i8 to f16
    %w = arith.mulf %number, %scale : f16
    linalg.yield %w : f16
  } -> tensor<4096x2x32xf16>
  %w = tensor.collapse_shape %scaled [[0], [1, 2]] : tensor<4096x2x32xf16> into tensor<4096x64xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k)>, affine_map<(n, k) -> (n, k)>, affine_map<(n, k) -> (n)>], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<64xf16>, tensor<4096x64xf16>) outs(%zeros : tensor<4096xf32>) {
  ^bb0(%a: f16, %b: f16, %o: f32):
    %wa = arith.extf %a : f16 to f32
    %wb = arith.extf %b : f16 to f32
    %p = arith.mulf %wa, %wb : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<4096xf32>
  return %y : tensor<4096xf32>
}

// One operation has all: loops for rows, groups, bytes of a group, and weights of a byte. Shifts are
// computed from the last loop.
// CHECK-LABEL: func.func @product
// CHECK-DAG: %[[X:.*]] = tensor.expand_shape %{{.*}} output_shape [2, 16, 2] : tensor<64xf16>
// CHECK-DAG: %[[PACKED:.*]] = tensor.expand_shape %{{.*}} output_shape [4096, 2, 16] : tensor<4096x32xi8>
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction", "reduction", "reduction"]
// CHECK-SAME: ins(%[[X]], %[[PACKED]], %{{.*}} : tensor<2x16x2xf16>, tensor<4096x2x16xi8>, tensor<4096x2xf16>)
// CHECK: %[[H:.*]] = linalg.index 3
// CHECK: arith.shrui
// CHECK: arith.uitofp
// CHECK: arith.mulf {{.*}} : f16
// CHECK: arith.addf
// CHECK-NOT: linalg.generic
