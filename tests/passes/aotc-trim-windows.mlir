// RUN: aotc-trim-windows
// A window of 3 with one place along a dimension of 4 reads 3 of it.
func.func @f(%x: tensor<1x4x6x1xf32>, %w: tensor<3x3x1x2xf32>, %y: tensor<1x1x4x2xf32>) -> tensor<1x1x4x2xf32> {
  %r = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x4x6x1xf32>, tensor<3x3x1x2xf32>) outs(%y : tensor<1x1x4x2xf32>) -> tensor<1x1x4x2xf32>
  return %r : tensor<1x1x4x2xf32>
}

// CHECK: %[[READ:.*]] = tensor.extract_slice %arg0[0, 0, 0, 0] [1, 3, 6, 1] [1, 1, 1, 1]
// CHECK: linalg.conv_2d_nhwc_hwcf ins(%[[READ]], %arg1 : tensor<1x3x6x1xf32>, tensor<3x3x1x2xf32>)

// Also where there are any number of images, and whatever the image's height.
func.func @any(%x: tensor<?x8x?x4xf32>, %w: tensor<3x3xf32>, %y: tensor<?x8x1x1xf32>) -> tensor<?x8x1x1xf32> {
  %r = linalg.pooling_nchw_max {strides = dense<2> : tensor<2xi64>} ins(%x, %w : tensor<?x8x?x4xf32>, tensor<3x3xf32>) outs(%y : tensor<?x8x1x1xf32>) -> tensor<?x8x1x1xf32>
  return %r : tensor<?x8x1x1xf32>
}

// CHECK: %[[IMAGES:.*]] = tensor.dim %arg0
// CHECK: %[[READ:.*]] = tensor.extract_slice %arg0[0, 0, 0, 0] [%[[IMAGES]], 8, 3, 3] [1, 1, 1, 1]
// CHECK: linalg.pooling_nchw_max {{.*}}ins(%[[READ]], %arg1 : tensor<?x8x3x3xf32>, tensor<3x3xf32>)
