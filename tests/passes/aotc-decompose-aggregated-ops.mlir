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
