// RUN: aotc-sink-conversions
#matrices = affine_map<(g, h, i, j) -> (g, i, j)>
#all = affine_map<(g, h, i, j) -> (g, h, i, j)>
#three = affine_map<(g, i, j) -> (g, i, j)>
#rows = affine_map<(g, h, i, j) -> (g, h, i)>

// What is repeated for heads is repeated in its own type.
func.func @repeated(%k: tensor<2x16x8xf16>) -> tensor<2x4x16x8xf32> {
  %wide = tensor.empty() : tensor<2x16x8xf32>
  %converted = linalg.generic {indexing_maps = [#three, #three], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%k : tensor<2x16x8xf16>) outs(%wide : tensor<2x16x8xf32>) {
  ^bb0(%x: f16, %old: f32):
    %y = arith.extf %x : f16 to f32
    linalg.yield %y : f32
  } -> tensor<2x16x8xf32>
  %empty = tensor.empty() : tensor<2x4x16x8xf32>
  %repeated = linalg.generic {indexing_maps = [#matrices, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%converted : tensor<2x16x8xf32>) outs(%empty : tensor<2x4x16x8xf32>) {
  ^bb0(%x: f32, %old: f32):
    linalg.yield %x : f32
  } -> tensor<2x4x16x8xf32>
  return %repeated : tensor<2x4x16x8xf32>
}

// A vector that is repeated along rows stays as it is.
func.func @rows(%k: tensor<2x4x16xf16>) -> tensor<2x4x16x8xf32> {
  %wide = tensor.empty() : tensor<2x4x16xf32>
  %converted = linalg.generic {indexing_maps = [#three, #three], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%k : tensor<2x4x16xf16>) outs(%wide : tensor<2x4x16xf32>) {
  ^bb0(%x: f16, %old: f32):
    %y = arith.extf %x : f16 to f32
    linalg.yield %y : f32
  } -> tensor<2x4x16xf32>
  %empty = tensor.empty() : tensor<2x4x16x8xf32>
  %repeated = linalg.generic {indexing_maps = [#rows, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%converted : tensor<2x4x16xf32>) outs(%empty : tensor<2x4x16x8xf32>) {
  ^bb0(%x: f32, %old: f32):
    linalg.yield %x : f32
  } -> tensor<2x4x16x8xf32>
  return %repeated : tensor<2x4x16x8xf32>
}

// CHECK-LABEL: func.func @repeated
// CHECK-SAME:      %[[K:.*]]: tensor<2x16x8xf16>
// CHECK:         %[[REPEATED:.*]] = linalg.generic {{.*}} ins(%[[K]] : tensor<2x16x8xf16>) outs({{.*}} : tensor<2x4x16x8xf16>)
// CHECK:         linalg.generic {{.*}} ins(%[[REPEATED]] : tensor<2x4x16x8xf16>) outs({{.*}} : tensor<2x4x16x8xf32>)
// CHECK-NEXT:    ^bb0(%[[X:.*]]: f16, %{{.*}}: f32):
// CHECK-NEXT:      arith.extf %[[X]]
// CHECK-LABEL: func.func @rows
// CHECK:         linalg.generic {{.*}} ins({{.*}} : tensor<2x4x16xf32>) outs({{.*}} : tensor<2x4x16x8xf32>)
