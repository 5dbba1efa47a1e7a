// RUN: aotc-sink-transposes
// Q and K of a tensor that holds both.
func.func @f(%x: tensor<4x7x2x3x8xf32>, %out: tensor<2x4x3x7x8xf32>) -> (tensor<1x4x3x7x8xf32>, tensor<1x4x3x7x8xf32>) {
  %t = linalg.transpose ins(%x : tensor<4x7x2x3x8xf32>) outs(%out : tensor<2x4x3x7x8xf32>) permutation = [2, 0, 3, 1, 4]
  %q = tensor.extract_slice %t[0, 0, 0, 0, 0] [1, 4, 3, 7, 8] [1, 1, 1, 1, 1] : tensor<2x4x3x7x8xf32> to tensor<1x4x3x7x8xf32>
  %k = tensor.extract_slice %t[1, 0, 0, 0, 0] [1, 4, 3, 7, 8] [1, 1, 1, 1, 1] : tensor<2x4x3x7x8xf32> to tensor<1x4x3x7x8xf32>
  return %q, %k : tensor<1x4x3x7x8xf32>, tensor<1x4x3x7x8xf32>
}

// CHECK-LABEL: func.func @f
// CHECK: %[[Q:.*]] = tensor.extract_slice %arg0[0, 0, 0, 0, 0] [4, 7, 1, 3, 8] [1, 1, 1, 1, 1]
// CHECK: linalg.transpose ins(%[[Q]] : tensor<4x7x1x3x8xf32>) outs({{.*}} : tensor<1x4x3x7x8xf32>) permutation = [2, 0, 3, 1, 4]
// CHECK: %[[K:.*]] = tensor.extract_slice %arg0[0, 0, 1, 0, 0] [4, 7, 1, 3, 8] [1, 1, 1, 1, 1]
// CHECK: linalg.transpose ins(%[[K]] : tensor<4x7x1x3x8xf32>)

// Places and sizes that are known when it runs.
func.func @any(%x: tensor<?x6xf32>, %out: tensor<6x?xf32>, %i: index, %n: index) -> tensor<2x?xf32> {
  %t = linalg.transpose ins(%x : tensor<?x6xf32>) outs(%out : tensor<6x?xf32>) permutation = [1, 0]
  %r = tensor.extract_slice %t[%i, 3] [2, %n] [1, 2] : tensor<6x?xf32> to tensor<2x?xf32>
  return %r : tensor<2x?xf32>
}

// CHECK-LABEL: func.func @any
// CHECK: %[[PART:.*]] = tensor.extract_slice %arg0[3, %arg2] [%arg3, 2] [2, 1] : tensor<?x6xf32> to tensor<?x2xf32>
// CHECK: linalg.transpose ins(%[[PART]] : tensor<?x2xf32>)

// Parts that overlap would be transposed twice.
func.func @overlap(%x: tensor<6x4xf32>, %out: tensor<4x6xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %t = linalg.transpose ins(%x : tensor<6x4xf32>) outs(%out : tensor<4x6xf32>) permutation = [1, 0]
  %a = tensor.extract_slice %t[0, 0] [4, 4] [1, 1] : tensor<4x6xf32> to tensor<4x4xf32>
  %b = tensor.extract_slice %t[0, 1] [4, 4] [1, 1] : tensor<4x6xf32> to tensor<4x4xf32>
  return %a, %b : tensor<4x4xf32>, tensor<4x4xf32>
}

// CHECK-LABEL: func.func @overlap
// CHECK: linalg.transpose ins(%arg0 : tensor<6x4xf32>)
// CHECK-NOT: linalg.transpose

// As PyTorch's nn.MultiheadAttention has it: a dimension of 1 is dropped in between.
func.func @dropped(%x: tensor<1x7x1x3x8xf32>, %out: tensor<3x7x1x1x8xf32>, %i: index) -> (tensor<1x7x1x8xf32>, tensor<1x7x1x8xf32>) {
  %t = linalg.transpose ins(%x : tensor<1x7x1x3x8xf32>) outs(%out : tensor<3x7x1x1x8xf32>) permutation = [3, 1, 2, 0, 4]
  %c = tensor.collapse_shape %t [[0], [1], [2, 3], [4]] : tensor<3x7x1x1x8xf32> into tensor<3x7x1x8xf32>
  %q = tensor.extract_slice %c[0, 0, 0, 0] [1, 7, 1, 8] [1, 1, 1, 1] : tensor<3x7x1x8xf32> to tensor<1x7x1x8xf32>
  %k = tensor.extract_slice %c[%i, 0, 0, 0] [1, 7, 1, 8] [1, 1, 1, 1] : tensor<3x7x1x8xf32> to tensor<1x7x1x8xf32>
  return %q, %k : tensor<1x7x1x8xf32>, tensor<1x7x1x8xf32>
}

// CHECK-LABEL: func.func @dropped
// CHECK: %[[K:.*]] = tensor.extract_slice %arg0[0, 0, 0, %arg2, 0] [1, 7, 1, 1, 8] [1, 1, 1, 1, 1] : tensor<1x7x1x3x8xf32> to tensor<1x7x1x1x8xf32>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[K]] : tensor<1x7x1x1x8xf32>) outs({{.*}} : tensor<1x7x1x1x8xf32>) permutation = [3, 1, 2, 0, 4]
// CHECK: tensor.collapse_shape %[[T]] {{.*}} : tensor<1x7x1x1x8xf32> into tensor<1x7x1x8xf32>

// What is no dimension of 1 stays a part of the transpose.
func.func @joined(%x: tensor<7x3x8xf32>, %out: tensor<3x7x8xf32>) -> tensor<1x56xf32> {
  %t = linalg.transpose ins(%x : tensor<7x3x8xf32>) outs(%out : tensor<3x7x8xf32>) permutation = [1, 0, 2]
  %c = tensor.collapse_shape %t [[0], [1, 2]] : tensor<3x7x8xf32> into tensor<3x56xf32>
  %q = tensor.extract_slice %c[0, 0] [1, 56] [1, 1] : tensor<3x56xf32> to tensor<1x56xf32>
  return %q : tensor<1x56xf32>
}

// CHECK-LABEL: func.func @joined
// CHECK: linalg.transpose ins(%arg0
