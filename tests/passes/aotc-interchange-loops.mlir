// RUN: linalg-generalize-named-ops,aotc-interchange-loops
// The channels' loop was the last one.
// CHECK: #[[X:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2 + d4, d3 + d5)>
// CHECK: #[[W:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, d4, d5)>
// CHECK: #[[Y:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
// CHECK: linalg.generic {indexing_maps = [#[[X]], #[[W]], #[[Y]]], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
func.func @depthwise(%x: tensor<1x8x9x9xf32>, %w: tensor<8x3x3xf32>, %y: tensor<1x8x7x7xf32>) -> tensor<1x8x7x7xf32> {
  %r = linalg.depthwise_conv_2d_nchw_chw ins(%x, %w : tensor<1x8x9x9xf32>, tensor<8x3x3xf32>) outs(%y : tensor<1x8x7x7xf32>) -> tensor<1x8x7x7xf32>
  return %r : tensor<1x8x7x7xf32>
}

// What a body asks for keeps its meaning.
// CHECK: linalg.index 1
func.func @index(%y: tensor<4x5xindex>) -> tensor<4x5xindex> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]} outs(%y : tensor<4x5xindex>) {
  ^bb0(%o: index):
    %i = linalg.index 0 : index
    linalg.yield %i : index
  } -> tensor<4x5xindex>
  return %r : tensor<4x5xindex>
}

// Several results, which have the same dimensions.
// CHECK-LABEL: func.func @both
// CHECK: iterator_types = ["parallel", "reduction"]
func.func @both(%x: tensor<4x5xf32>, %y: tensor<5xf32>, %z: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<4x5xf32>) outs(%y, %z : tensor<5xf32>, tensor<5xf32>) {
  ^bb0(%v: f32, %a: f32, %b: f32):
    %s = arith.addf %a, %v : f32
    %m = arith.maximumf %b, %v : f32
    linalg.yield %s, %m : f32, f32
  } -> (tensor<5xf32>, tensor<5xf32>)
  return %r#0, %r#1 : tensor<5xf32>, tensor<5xf32>
}
