// RUN: aotc-decompose-aggregated-ops
func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %out = tensor.empty() : tensor<4x8xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<4x8xf32>) outs(%out : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-NOT:  linalg.softmax
// CHECK:      %[[MAX:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%arg0
// CHECK:        arith.maxnumf
// CHECK:      %[[EXP:.*]] = linalg.generic {{.*}} ins(%arg0, %[[MAX]] :
// CHECK:        math.exp
// CHECK:      %[[SUM:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[EXP]] :
// CHECK:        arith.addf
// CHECK:      linalg.generic {{.*}} ins(%[[EXP]], %[[SUM]] :
// CHECK:        arith.divf
// CHECK-NOT:  transform

func.func @winograd(%w: tensor<4x3x3x5xf32>) -> tensor<6x6x5x4xf32> {
  %out = tensor.empty() : tensor<6x6x5x4xf32>
  %y = linalg.winograd_filter_transform fmr(F_4_3) ins(%w : tensor<4x3x3x5xf32>) outs(%out : tensor<6x6x5x4xf32>) -> tensor<6x6x5x4xf32>
  return %y : tensor<6x6x5x4xf32>
}

// CHECK-LABEL: func.func @winograd
// CHECK-NOT:   linalg.winograd
// CHECK:       scf.for
// CHECK:         linalg.matmul
// CHECK:         linalg.matmul

ml_program.global private @table(dense<[1.0, 2.0]> : tensor<2xf32>) : tensor<2xf32>
func.func @constant() -> tensor<2xf32> {
  %table = ml_program.global_load_const @table : tensor<2xf32>
  return %table : tensor<2xf32>
}

// CHECK-LABEL: func.func @constant
// CHECK:         %[[TABLE:.*]] = ml_program.global_load @table : tensor<2xf32>
// CHECK-NEXT:    return %[[TABLE]]

// Windows end before the padding in the first case, and reach one of two rows of it in the second.
func.func @padded(%x: tensor<1x8x31x31xf32>, %z: tensor<1x8x30x30xf32>) -> (tensor<1x8x15x15xf32>, tensor<1x8x15x15xf32>) {
  %least = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<1x8x15x15xf32>
  %first = linalg.fill ins(%least : f32) outs(%empty : tensor<1x8x15x15xf32>) -> tensor<1x8x15x15xf32>
  %window = tensor.empty() : tensor<3x3xf32>
  %a = tensor.pad %x low[0, 0, 0, 0] high[0, 0, 2, 2] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %least : f32
  } : tensor<1x8x31x31xf32> to tensor<1x8x33x33xf32>
  %y = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>} ins(%a, %window : tensor<1x8x33x33xf32>, tensor<3x3xf32>) outs(%first : tensor<1x8x15x15xf32>) -> tensor<1x8x15x15xf32>
  %b = tensor.pad %z low[0, 0, 0, 0] high[0, 0, 2, 2] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %least : f32
  } : tensor<1x8x30x30xf32> to tensor<1x8x32x32xf32>
  %v = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>} ins(%b, %window : tensor<1x8x32x32xf32>, tensor<3x3xf32>) outs(%first : tensor<1x8x15x15xf32>) -> tensor<1x8x15x15xf32>
  return %y, %v : tensor<1x8x15x15xf32>, tensor<1x8x15x15xf32>
}

// CHECK-LABEL: func.func @padded
// CHECK-NOT:   tensor.empty() : tensor<1x8x33x33xf32>
// CHECK:       linalg.pooling_nchw_max {{.*}} ins(%arg0,
// CHECK:       tensor.empty() : tensor<1x8x31x31xf32>
// CHECK:       linalg.pooling_nchw_max {{.*}} ins({{.*}} : tensor<1x8x31x31xf32>,


// Padding of unknown size is kept.
func.func @padded_by(%x: tensor<1x1x10xf32>, %high: index) -> tensor<1x1x4xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1] high[0, 0, %high] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x1x10xf32> to tensor<1x1x12xf32>
  %window = tensor.empty() : tensor<2xf32>
  %empty = tensor.empty() : tensor<1x1x4xf32>
  %first = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x1x4xf32>) -> tensor<1x1x4xf32>
  %y = linalg.pooling_ncw_sum {strides = dense<2> : vector<1xi64>} ins(%padded, %window : tensor<1x1x12xf32>, tensor<2xf32>) outs(%first : tensor<1x1x4xf32>) -> tensor<1x1x4xf32>
  return %y : tensor<1x1x4xf32>
}

// CHECK-LABEL: func.func @padded_by
// CHECK:       tensor.pad %arg0 low[0, 0, 1] high[0, 0, %arg1]
// CHECK:       linalg.pooling_ncw_sum {{.*}} ins({{.*}} : tensor<1x1x12xf32>,


// Padding of images of any size is a loop that convolutions can include. Other tensors may have no
// elements: nothing of these can be read in place of padding.
func.func @open(%x: tensor<1x8x?x?xf32>, %w: tensor<8x3x3xf32>, %out: tensor<1x8x?x?xf32>) -> (tensor<1x8x?x?xf32>, tensor<1x8x?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x?x?xf32> to tensor<1x8x?x?xf32>
  %y = linalg.depthwise_conv_2d_nchw_chw ins(%a, %w : tensor<1x8x?x?xf32>, tensor<8x3x3xf32>) outs(%out : tensor<1x8x?x?xf32>) -> tensor<1x8x?x?xf32>
  %b = tensor.pad %x low[0, 0, 2, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x?x?xf32> to tensor<1x8x?x?xf32>
  return %y, %b : tensor<1x8x?x?xf32>, tensor<1x8x?x?xf32>
}

// CHECK-LABEL: func.func @open
// CHECK:       cf.assert {{.*}}, "an image of convolutions or poolings has no elements"
// CHECK:       cf.assert {{.*}}, "an image of convolutions or poolings has no elements"
// CHECK:       %[[PADDED:.*]] = linalg.generic
// CHECK:         %[[READ:.*]] = tensor.extract %arg0
// CHECK:         arith.select {{.*}}, %[[READ]]
// CHECK:       linalg.depthwise_conv_2d_nchw_chw ins(%[[PADDED]],
// CHECK:       tensor.pad %arg0 low[0, 0, 2, 1]

// Sizes of what is scattered are those of the coordinates and of the destination. A bit cast is
// elementwise.
func.func @scattered(%x: tensor<?x?xf32>, %rows: tensor<?x?xi32>, %at: tensor<?x1xindex>) -> tensor<?x?xf32> {
  %cast = tensor.bitcast %rows : tensor<?x?xi32> to tensor<?x?xf32>
  %y = tensor.scatter %cast into %x[%at] scatter_dims([0]) unique : (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x1xindex>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// CHECK-LABEL: func.func @scattered
// CHECK:       arith.bitcast %arg1 : tensor<?x?xi32> to tensor<?x?xf32>
// CHECK:       cf.assert {{.*}}, "tensor.scatter: dimension 0 of the source and 0 of the tensor of coordinates have different sizes"
// CHECK:       cf.assert {{.*}}, "tensor.scatter: dimension 1 of the source and 1 of the destination have different sizes"
// CHECK:       scf.forall
