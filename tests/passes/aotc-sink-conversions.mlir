// RUN: aotc-sink-conversions
#matrices = affine_map<(g, h, i, j) -> (g, i, j)>
#all = affine_map<(g, h, i, j) -> (g, h, i, j)>
#three = affine_map<(g, i, j) -> (g, i, j)>
#groups = affine_map<(b, g, h, i, j) -> (b, g, i, j)>
#five = affine_map<(b, g, h, i, j) -> (b, g, h, i, j)>
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

// Of unknown sizes, with reshapes between the two and behind them.
func.func @unknown(%k: tensor<?x2x?x8xf16>, %batch: index, %keys: index) -> tensor<?x?x8xf32> {
  %wide = tensor.empty(%batch, %keys) : tensor<?x2x?x8xf32>
  %converted = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<?x2x?x8xf16>) outs(%wide : tensor<?x2x?x8xf32>) {
  ^bb0(%x: f16, %old: f32):
    %y = arith.extf %x : f16 to f32
    linalg.yield %y : f32
  } -> tensor<?x2x?x8xf32>
  %apart = tensor.expand_shape %converted [[0], [1], [2, 3], [4]] output_shape [%batch, 2, 1, %keys, 8]
      : tensor<?x2x?x8xf32> into tensor<?x2x1x?x8xf32>
  %together = tensor.collapse_shape %apart [[0], [1, 2], [3], [4]] : tensor<?x2x1x?x8xf32> into tensor<?x2x?x8xf32>
  %empty = tensor.empty(%batch, %keys) : tensor<?x2x4x?x8xf32>
  %repeated = linalg.generic {indexing_maps = [#groups, #five], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%together : tensor<?x2x?x8xf32>) outs(%empty : tensor<?x2x4x?x8xf32>) {
  ^bb0(%x: f32, %old: f32):
    linalg.yield %x : f32
  } -> tensor<?x2x4x?x8xf32>
  %matrices = tensor.collapse_shape %repeated [[0, 1, 2], [3], [4]] : tensor<?x2x4x?x8xf32> into tensor<?x?x8xf32>
  return %matrices : tensor<?x?x8xf32>
}

// CHECK-LABEL: func.func @repeated
// CHECK-SAME:      %[[K:.*]]: tensor<2x16x8xf16>
// CHECK:         %[[REPEATED:.*]] = linalg.generic {{.*}} ins(%[[K]] : tensor<2x16x8xf16>) outs({{.*}} : tensor<2x4x16x8xf16>)
// CHECK:         linalg.generic {{.*}} ins(%[[REPEATED]] : tensor<2x4x16x8xf16>) outs({{.*}} : tensor<2x4x16x8xf32>)
// CHECK-NEXT:    ^bb0(%[[X:.*]]: f16, %{{.*}}: f32):
// CHECK-NEXT:      arith.extf %[[X]]
// CHECK-LABEL: func.func @rows
// CHECK:         linalg.generic {{.*}} ins({{.*}} : tensor<2x4x16xf32>) outs({{.*}} : tensor<2x4x16x8xf32>)
// CHECK-LABEL: func.func @unknown
// CHECK-SAME:      %[[K:[^ ]*]]: tensor<?x2x?x8xf16>
// CHECK:         %[[APART:.*]] = tensor.expand_shape %[[K]]
// CHECK:         %[[TOGETHER:.*]] = tensor.collapse_shape %[[APART]]
// CHECK:         %[[REPEATED:.*]] = linalg.generic {{.*}} ins(%[[TOGETHER]] : tensor<?x2x?x8xf16>) outs({{.*}} : tensor<?x2x4x?x8xf16>)
// CHECK:         %[[MATRICES:.*]] = tensor.collapse_shape %[[REPEATED]] {{.*}} into tensor<?x?x8xf16>
// CHECK:         linalg.generic {{.*}} ins(%[[MATRICES]] : tensor<?x?x8xf16>) outs({{.*}} : tensor<?x?x8xf32>)
