func.func @add(%A: tensor<4x5xf32>, %B: tensor<1x5xf32>) -> tensor<4x5xf32> attributes {llvm.emit_c_interface} {
  %0 = tosa.add %A, %B : (tensor<4x5xf32>, tensor<1x5xf32>) -> tensor<4x5xf32>
  %1 = tosa.tanh %0 : (tensor<4x5xf32>) -> tensor<4x5xf32>
  return %1 : tensor<4x5xf32>
}
func.func @red(%A: tensor<4x5xf32>) -> tensor<4x1xf32> attributes {llvm.emit_c_interface} {
  %1 = tosa.reduce_sum %A {axis = 1 : i32} : (tensor<4x5xf32>) -> tensor<4x1xf32>
  return %1 : tensor<4x1xf32>
}
func.func @tr(%A: tensor<4x5xf32>) -> tensor<5x4xf32> attributes {llvm.emit_c_interface} {
  %1 = tosa.transpose %A {perms = array<i32: 1, 0>} : (tensor<4x5xf32>) -> tensor<5x4xf32>
  return %1 : tensor<5x4xf32>
}
func.func @conv(%I: tensor<1x8x8x4xf32>, %W: tensor<8x3x3x4xf32>, %b: tensor<8xf32>) -> tensor<1x8x8x8xf32> attributes {llvm.emit_c_interface} {
  %zp = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %1 = tosa.conv2d %I, %W, %b, %zp, %zp {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x8x8x4xf32>, tensor<8x3x3x4xf32>, tensor<8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x8x8x8xf32>
  return %1 : tensor<1x8x8x8xf32>
}
func.func @dyn(%A: tensor<?x5xf32>, %B: tensor<?x5xf32>) -> tensor<?x5xf32> attributes {llvm.emit_c_interface} {
  %0 = tosa.maximum %A, %B : (tensor<?x5xf32>, tensor<?x5xf32>) -> tensor<?x5xf32>
  return %0 : tensor<?x5xf32>
}
func.func @scatter(%V: tensor<1x6x4xf32>, %X: tensor<1x3x4xf32>) -> tensor<1x6x4xf32> attributes {llvm.emit_c_interface} {
  %at = "tosa.const"() <{values = dense<[[4, 0, 5]]> : tensor<1x3xi32>}> : () -> tensor<1x3xi32>
  %0 = tosa.scatter %V, %at, %X : (tensor<1x6x4xf32>, tensor<1x3xi32>, tensor<1x3x4xf32>) -> tensor<1x6x4xf32>
  return %0 : tensor<1x6x4xf32>
}
