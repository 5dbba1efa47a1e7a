// RUN: aotc-expand-reshapes
func.func @f(%x: tensor<?x256xf16>) -> tensor<?x4x64xf16> {
  %c0 = arith.constant 0 : index
  %n4 = arith.constant 4 : i64
  %n64 = arith.constant 64 : i64
  %size = tensor.dim %x, %c0 : tensor<?x256xf16>
  %n = arith.index_cast %size : index to i64
  %shape = tensor.from_elements %n, %n4, %n64 : tensor<3xi64>
  %y = tensor.reshape %x(%shape) : (tensor<?x256xf16>, tensor<3xi64>) -> tensor<?x4x64xf16>
  return %y : tensor<?x4x64xf16>
}

// CHECK:     tensor.expand_shape %arg0 {{\[\[}}0], [1, 2]] output_shape [%{{.*}}, 4, 64] : tensor<?x256xf16> into tensor<?x4x64xf16>
// CHECK-NOT: tensor.reshape
