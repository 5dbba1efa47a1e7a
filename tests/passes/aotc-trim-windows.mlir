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

// Also where the window's size is not known.
func.func @window(%x: tensor<9x1x5x3xf32>, %w: tensor<16x1x3x?xf32>, %y: tensor<9x16x3x1xf32>) -> tensor<9x16x3x1xf32> {
  %r = linalg.conv_2d_nchw_fchw {strides = dense<[1, 3]> : tensor<2xi64>} ins(%x, %w : tensor<9x1x5x3xf32>, tensor<16x1x3x?xf32>) outs(%y : tensor<9x16x3x1xf32>) -> tensor<9x16x3x1xf32>
  return %r : tensor<9x16x3x1xf32>
}

// CHECK-LABEL: @window
// CHECK: %[[COLUMNS:.*]] = tensor.dim %arg1
// CHECK: %[[READ:.*]] = affine.apply {{.*}}(%{{.*}}, %[[COLUMNS]])
// CHECK: %[[SIZE:.*]] = arith.maxsi %[[READ]]
// CHECK: tensor.extract_slice %arg0[0, 0, 0, 0] [9, 1, 5, %[[SIZE]]] [1, 1, 1, 1]

// The image says that there is one channel: the type of the result says it, too.
func.func @channels(%x: tensor<3x1x?x5xf32>, %w: tensor<2x3xf32>, %y: tensor<3x?x3x1xf32>) -> tensor<3x?x3x1xf32> {
  %r = linalg.pooling_nchw_sum {dilations = dense<2> : tensor<2xi64>} ins(%x, %w : tensor<3x1x?x5xf32>, tensor<2x3xf32>) outs(%y : tensor<3x?x3x1xf32>) -> tensor<3x?x3x1xf32>
  return %r : tensor<3x?x3x1xf32>
}

// CHECK-LABEL: @channels
// CHECK: %[[OUT:.*]] = tensor.cast %arg2 : tensor<3x?x3x1xf32> to tensor<3x1x3x1xf32>
// CHECK: %[[POOL:.*]] = linalg.pooling_nchw_sum {{.*}}outs(%[[OUT]] : tensor<3x1x3x1xf32>) -> tensor<3x1x3x1xf32>
// CHECK: tensor.cast %[[POOL]] : tensor<3x1x3x1xf32> to tensor<3x?x3x1xf32>

// An image that the windows read as a whole is no slice, which could not be read as a matrix.
func.func @whole(%x: tensor<2x?x?x64xf32>, %w: tensor<1x1x64x32xf32>) -> tensor<2x?x?x32xf32> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %height = tensor.dim %x, %c1 : tensor<2x?x?x64xf32>
  %width = tensor.dim %x, %c2 : tensor<2x?x?x64xf32>
  %y = tensor.empty(%height, %width) : tensor<2x?x?x32xf32>
  %r = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<2x?x?x64xf32>, tensor<1x1x64x32xf32>) outs(%y : tensor<2x?x?x32xf32>) -> tensor<2x?x?x32xf32>
  return %r : tensor<2x?x?x32xf32>
}

// CHECK-LABEL: @whole
// CHECK: linalg.conv_2d_nhwc_hwcf ins(%arg0, %arg1

// Also where its sizes are values of which nothing is known.
func.func @computed(%x: tensor<2x8x8x64xf32>, %w: tensor<1x1x64x32xf32>, %height: index, %width: index) -> tensor<2x?x?x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%height, %width) : tensor<2x?x?x64xf32>
  %image = linalg.fill ins(%zero : f32) outs(%e : tensor<2x?x?x64xf32>) -> tensor<2x?x?x64xf32>
  %y = tensor.empty(%height, %width) : tensor<2x?x?x32xf32>
  %r = linalg.conv_2d_nhwc_hwcf ins(%image, %w : tensor<2x?x?x64xf32>, tensor<1x1x64x32xf32>) outs(%y : tensor<2x?x?x32xf32>) -> tensor<2x?x?x32xf32>
  return %r : tensor<2x?x?x32xf32>
}

// CHECK-LABEL: @computed
// CHECK: %[[IMAGE:.*]] = linalg.fill
// CHECK: linalg.conv_2d_nhwc_hwcf ins(%[[IMAGE]], %arg1
