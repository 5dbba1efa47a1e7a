// RUN: linalg-generalize-named-ops,aotc-order-loops
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
