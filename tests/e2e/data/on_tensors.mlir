func.func @pad(%A: tensor<4x5xf32>) -> tensor<6x7xf32> attributes {llvm.emit_c_interface} {
  %z = arith.constant 0.0 : f32
  %p = tensor.pad %A low[1, 1] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<4x5xf32> to tensor<6x7xf32>
  return %p : tensor<6x7xf32>
}
func.func @slice(%A: tensor<8x8xf32>) -> tensor<4x4xf32> attributes {llvm.emit_c_interface} {
  %s = tensor.extract_slice %A[1, 2] [4, 4] [1, 1] : tensor<8x8xf32> to tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}
func.func @reshape(%A: tensor<8x8xf32>) -> tensor<64xf32> attributes {llvm.emit_c_interface} {
  %s = tensor.collapse_shape %A [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %t = arith.addf %s, %s : tensor<64xf32>
  return %t : tensor<64xf32>
}
func.func @concat(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>) -> tensor<16x8xf32> attributes {llvm.emit_c_interface} {
  %s = tensor.concat dim(0) %A, %B : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  return %s : tensor<16x8xf32>
}
func.func @loop(%A: tensor<8xf32>, %n: index) -> tensor<8xf32> attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %A) -> tensor<8xf32> {
    %y = arith.addf %x, %A : tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
func.func @cond(%A: tensor<8xf32>, %b: i1) -> tensor<8xf32> attributes {llvm.emit_c_interface} {
  %r = scf.if %b -> tensor<8xf32> {
    %y = arith.addf %A, %A : tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  } else {
    scf.yield %A : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
func.func private @helper(%A: tensor<?xf32>) -> tensor<?xf32> {
  %y = math.exp %A : tensor<?xf32>
  return %y : tensor<?xf32>
}
func.func @calls(%A: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) attributes {llvm.emit_c_interface} {
  %a = call @helper(%A) : (tensor<?xf32>) -> tensor<?xf32>
  %b = call @helper(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %a, %b : tensor<?xf32>, tensor<?xf32>
}
func.func @gen(%n: index) -> tensor<?xf32> attributes {llvm.emit_c_interface} {
  %r = tensor.generate %n {
  ^bb0(%i: index):
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to f32
    tensor.yield %f : f32
  } : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @gather(%A: tensor<8x4xf32>, %i: tensor<3x1xindex>) -> tensor<3x4xf32> attributes {llvm.emit_c_interface} {
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0,d1)->(d0,d1)>], iterator_types = ["parallel","parallel"]} outs(%e : tensor<3x4xf32>) {
  ^bb0(%o: f32):
    %x = linalg.index 0 : index
    %y = linalg.index 1 : index
    %c0 = arith.constant 0 : index
    %k = tensor.extract %i[%x, %c0] : tensor<3x1xindex>
    %v = tensor.extract %A[%k, %y] : tensor<8x4xf32>
    linalg.yield %v : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @scalar(%A: tensor<8xf32>) -> f32 attributes {llvm.emit_c_interface} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.reduce ins(%A : tensor<8xf32>) outs(%i : tensor<f32>) dimensions = [0]
    (%a: f32, %b: f32) { %s = arith.addf %a, %b : f32 linalg.yield %s : f32 }
  %v = tensor.extract %r[] : tensor<f32>
  return %v : f32
}
func.func @consts(%A: tensor<2x2xf32>) -> tensor<2x2xf32> attributes {llvm.emit_c_interface} {
  %c = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %y = arith.addf %A, %c : tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}
func.func @twice(%A: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {llvm.emit_c_interface} {
  %r = math.exp %A : tensor<8xf32>
  return %r, %r : tensor<8xf32>, tensor<8xf32>
}
func.func @pack(%A: tensor<4x5xf32>) -> (tensor<3x2x2x3xf32>, tensor<4x5xf32>) attributes {llvm.emit_c_interface} {
  %z = arith.constant 7.0 : f32
  %e = tensor.empty() : tensor<3x2x2x3xf32>
  %r = linalg.pack %A padding_value(%z : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [2, 3]
    into %e : tensor<4x5xf32> -> tensor<3x2x2x3xf32>
  %d = arith.addf %r, %r : tensor<3x2x2x3xf32>
  %f = tensor.empty() : tensor<4x5xf32>
  %u = linalg.unpack %d outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [2, 3]
    into %f : tensor<3x2x2x3xf32> -> tensor<4x5xf32>
  return %r, %u : tensor<3x2x2x3xf32>, tensor<4x5xf32>
}
// Windows with one place along a dimension, that end before their input does.
func.func @window(%A: tensor<1x4x7x2xf32>, %K: tensor<3x3x2x5xf32>) -> tensor<1x1x3x5xf32> attributes {llvm.emit_c_interface} {
  %zero = arith.constant dense<0.0> : tensor<1x1x3x5xf32>
  %r = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}
    ins(%A, %K : tensor<1x4x7x2xf32>, tensor<3x3x2x5xf32>) outs(%zero : tensor<1x1x3x5xf32>) -> tensor<1x1x3x5xf32>
  return %r : tensor<1x1x3x5xf32>
}
func.func @dilated(%A: tensor<1x6x3x2xf32>, %K: tensor<3x2x2x5xf32>) -> tensor<1x1x1x5xf32> attributes {llvm.emit_c_interface} {
  %zero = arith.constant dense<0.0> : tensor<1x1x1x5xf32>
  %r = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : vector<2xi64>, dilations = dense<[2, 1]> : vector<2xi64>}
    ins(%A, %K : tensor<1x6x3x2xf32>, tensor<3x2x2x5xf32>) outs(%zero : tensor<1x1x1x5xf32>) -> tensor<1x1x1x5xf32>
  return %r : tensor<1x1x1x5xf32>
}
