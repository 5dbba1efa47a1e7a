// RUN: aotc-trim-windows
// A window of 3 with one place along a dimension of 4 reads 3 of it.
func.func @f(%x: tensor<1x4x6x1xf32>, %w: tensor<3x3x1x2xf32>, %y: tensor<1x1x4x2xf32>) -> tensor<1x1x4x2xf32> {
  %r = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x4x6x1xf32>, tensor<3x3x1x2xf32>) outs(%y : tensor<1x1x4x2xf32>) -> tensor<1x1x4x2xf32>
  return %r : tensor<1x1x4x2xf32>
}

// CHECK: %[[READ:.*]] = tensor.extract_slice %arg0[0, 0, 0, 0] [1, 3, 6, 1] [1, 1, 1, 1]
// CHECK: linalg.conv_2d_nhwc_hwcf ins(%[[READ]], %arg1 : tensor<1x3x6x1xf32>, tensor<3x3x1x2xf32>)
